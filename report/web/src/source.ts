// The page's data comes from the page's file itself, or from the server that sent the page.

/** served is true if a server supplies the data. */
export const served = !document.getElementById('about')

function textOf(id: string): string {
  const e = document.getElementById(id)
  if (!e) throw new Error(`the file has no part ${id}`)
  return e.textContent
}

/** asked requests a path from the server and returns the answer. */
export async function asked(path: string): Promise<Uint8Array> {
  const answer = await fetch(path, { cache: 'no-store', credentials: 'same-origin' })
  if (!answer.ok) throw new Error((await answer.text()).trim() || `the server says ${answer.status}`)
  return new Uint8Array(await answer.arrayBuffer())
}

async function unpacked(id: string): Promise<Uint8Array> {
  const text = atob(textOf(id))
  const bytes = new Uint8Array(text.length)
  for (let i = 0; i < text.length; i++) bytes[i] = text.charCodeAt(i)
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream('gzip'))
  return new Uint8Array(await new Response(stream).arrayBuffer())
}

const decoded = (bytes: Uint8Array) => JSON.parse(new TextDecoder().decode(bytes)) as unknown

/** aboutPart returns the facts about the page, and documentsPart returns the documents that commands print. */
export const aboutPart = async (first: boolean) =>
  served ? decoded(await asked(`data/about${only(first)}`)) : (JSON.parse(textOf('about')) as unknown)
export const documentsPart = async (first: boolean) =>
  decoded(await (served ? asked(`data/documents${only(first)}`) : unpacked('documents')))

/** If first is true, the server sends only the documents that the page needs first. */
const only = (first: boolean) => (first ? '?first=1' : '')

/** Returns the Arrow streams of a device. A server sends only the range of events from from to to. */
export const devicePart = (i: number, from: number, to: number) =>
  served ? asked(`data/device/${i}?from=${from}&to=${to}`) : unpacked(`device-${i}`)
