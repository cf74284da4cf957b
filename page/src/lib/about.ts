/** What the server knows and the page only shows: the standard keys and the position encodings. */
import { ask } from './api'

export interface KeySet {
  name: string
  label: string
  /** Whether a seed decides which keys they are. */
  random: boolean
  /** At most d + surplus keys exist in d dimensions; null: any number. */
  surplus: number | null
}

export interface Encoding {
  name: string
  label: string
  formula: string
  has_base: boolean
}

export const about: { version: string; keys: KeySet[]; encodings: Encoding[] } = { version: '', keys: [], encodings: [] }

/** Fetch the lists; without a server the page opens all the same, and its views say what is wrong. */
export async function loadAbout(): Promise<void> {
  try {
    Object.assign(about, await ask<typeof about>('about'))
  } catch {
    // Every view asks the server something, and shows why there is no answer.
  }
}
