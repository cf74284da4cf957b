/** The address of a view: `#/attention?n=8&beta=4`. What is there restores the view. */

export const views = ['attention', 'claims', 'positions', 'models'] as const
export type View = (typeof views)[number]

function parse(hash: string): { view: View; values: Record<string, string> } {
  const [path, query = ''] = hash.replace(/^#\/?/, '').split('?', 2)
  const view = (views as readonly string[]).includes(path) ? (path as View) : 'attention'
  return { view, values: Object.fromEntries(new URLSearchParams(query)) }
}

const first = parse(location.hash)

export const address = $state({ view: first.view, values: first.values, visit: 0 })

let written = location.hash
let timer: ReturnType<typeof setTimeout> | undefined
const remembered = new Map<View, string>()

function hashOf(view: View, values: Record<string, string>): string {
  const query = new URLSearchParams(values).toString().replaceAll('%2C', ',').replaceAll('%3B', ';')
  return `#/${view}${query ? `?${query}` : ''}`
}

/** Write the state of a view into the address, a moment later: a drag is one entry, not hundreds. */
export function remember(view: View, values: Record<string, string>): void {
  remembered.set(view, hashOf(view, values))
  if (view !== address.view) return
  clearTimeout(timer)
  timer = setTimeout(() => {
    // Somebody may have gone back meanwhile: then this entry of the history is another view's.
    if (view !== address.view || location.hash !== written) return
    history.replaceState(null, '', hashOf(view, values))
    written = location.hash
  }, 250)
}

/** Go to a view: as it was left, or in a given state. */
export function go(view: View, values?: Record<string, string>): void {
  clearTimeout(timer)
  location.hash = values ? hashOf(view, values) : (remembered.get(view) ?? hashOf(view, {}))
}

window.addEventListener('hashchange', () => {
  if (location.hash === written) return
  written = location.hash
  const found = parse(location.hash)
  address.view = found.view
  address.values = found.values
  address.visit += 1
})

/** Numbers as an address holds them: short, and the same when read again. */
export function short(value: number, digits = 4): string {
  return String(Number(value.toPrecision(digits)))
}

export function numberOf(text: string | undefined, fallback: number, low = -Infinity, high = Infinity): number {
  const value = text === undefined || text.trim() === '' ? NaN : Number(text)
  return Number.isFinite(value) ? Math.min(high, Math.max(low, value)) : fallback
}

export function wholeOf(text: string | undefined, fallback: number, low: number, high: number): number {
  return Math.round(numberOf(text, fallback, low, high))
}

export function rowsOf(text: string | undefined): number[][] | null {
  if (!text) return null
  const rows = text.split(';').map((row) => row.split(',').map(Number))
  const even = rows.every((row) => row.length === rows[0].length && row.every(Number.isFinite))
  return even ? rows : null
}

export function rowsText(rows: readonly ArrayLike<number>[], digits = 4): string {
  return rows.map((row) => Array.from(row, (value) => short(value, digits)).join(',')).join(';')
}

export function listOf(text: string | undefined, below: number): number[] {
  if (!text) return []
  return [...new Set(text.split(',').map(Number))].filter((i) => Number.isInteger(i) && i >= 0 && i < below)
}
