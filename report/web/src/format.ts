// Formats numbers as the command line prints them: MiB with two decimals and commas, a true minus sign, milliseconds.

const two = new Intl.NumberFormat('en-US', { minimumFractionDigits: 2, maximumFractionDigits: 2 })
const one = new Intl.NumberFormat('en-US', { minimumFractionDigits: 1, maximumFractionDigits: 1 })
const none = new Intl.NumberFormat('en-US', { maximumFractionDigits: 0 })
const MiB = 2 ** 20
export const GiB = 2 ** 30

const minus = (text: string) => text.replace('-', '−')

export const count = (n: number) => minus(none.format(n))

/** Formats bytes in MiB without the unit, for use in a column. */
export function mibs(bytes: number): string {
  if (bytes !== 0 && Math.abs(bytes) < MiB / 100) return (bytes < 0 ? '−' : '') + '<0.01'
  return minus(two.format(bytes / MiB))
}

export const mib = (bytes: number | null | undefined) => (bytes == null ? '—' : mibs(bytes) + ' MiB')

export const signedMibs = (bytes: number) => (bytes > 0 ? '+' : '') + mibs(bytes)
export const signedMib = (bytes: number) => signedMibs(bytes) + ' MiB'

/** Formats by how many bytes an event changes the memory: small changes in bytes, and others in MiB. */
export function signedBytes(bytes: number): string {
  if (Math.abs(bytes) < MiB / 100) return (bytes > 0 ? '+' : '') + minus(none.format(bytes)) + ' B'
  return signedMib(bytes)
}

export function percent(part: number, whole: number): string {
  const p = whole ? (part / whole) * 100 : 0
  if (p !== 0 && Math.abs(p) < 0.1) return '<0.1 %'
  return minus(one.format(p)) + ' %'
}

export const ms = (v: number | null | undefined) => (v == null ? '—' : minus(one.format(v)) + ' ms')
export const signedMs = (v: number) => (v > 0 ? '+' : '') + ms(v)
export const times = (v: number) => '× ' + two.format(v)
export const fixed = (v: number, digits: number) => minus(v.toFixed(digits))

/** Returns a category's name with spaces. */
export const plain = (category: string) => category.replaceAll('_', ' ')

/** Returns a name with its control characters made visible. So no character can hide text or reverse its direction. */
export function shown(name: string): string {
  return name.replace(
    /[\u0000-\u001f\u007f-\u009f\u200b-\u200f\u202a-\u202e\u2066-\u2069\ufeff]/g,
    (c) => '\\u' + c.charCodeAt(0).toString(16).padStart(4, '0'),
  )
}
