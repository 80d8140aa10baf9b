// The cards that a run can be compared with, and the memory that torch reports for them (total_memory). A test compares
// this list with the profiles in collect/phantom/profiles.

export interface Card {
  name: string
  title: string
  bytes: number
}

export const cards: Card[] = [
  { name: '16', title: '16 GB (T4)', bytes: 15_637_086_208 },
  { name: '24', title: '24 GB (RTX 4090)', bytes: 25_250_627_584 },
  { name: '40', title: '40 GB (A100)', bytes: 42_298_834_944 },
  { name: '48', title: '48 GB (L40S)', bytes: 47_576_711_168 },
  { name: '80', title: '80 GB (H100)', bytes: 85_017_755_648 },
  { name: '141', title: '141 GB (H200)', bytes: 150_109_880_320 },
]

export const cardOf = (name: string): Card => cards.find((c) => c.name === name) ?? cards[4]
