/** Numbers and rows of numbers as people type them, and what is wrong with a text that is none. */

const NUMBER = /^[-+−]?(?:\d+\.?\d*|\.\d+)(?:e[-+]?\d+)?$/i

/** What is wrong with a typed number; empty if nothing is. */
export function problemOfNumber(text: string, min: number, max: number, whole = false): string {
  const kind = whole ? 'a whole number' : 'a number'
  const wanted = `${kind} from ${min} to ${max}`
  const plain = text.trim()
  if (!plain) return `Nothing is typed here; type ${wanted}.`
  if (!NUMBER.test(plain)) {
    if (/^[-+]?[\d.,]+$/.test(plain)) return `“${plain}” can be read in two ways; write a point for decimals, and no commas.`
    return `“${plain}” is no number; type ${wanted}.`
  }
  const value = Number(plain.replace('−', '-'))
  if (!(value >= min && value <= max)) return `${plain} is too ${value < min ? 'small' : 'large'}; type ${wanted}.`
  if (whole && !Number.isInteger(value)) return `${plain} is not whole; type ${wanted}.`
  return ''
}

export interface RowLimits {
  /** How many rows there may be. */
  least: number
  most: number
  /** Numbers in a row: just so many, or from 1 up to so many. */
  columns?: number
  mostColumns?: number
  /** What a row is, for the message: key, value, query. */
  name: string
}

/** A row a line, numbers with spaces or commas between them, with or without brackets around. */
export function rowsIn(text: string, limits: RowLimits): { rows: number[][] } | { problem: string } {
  const { least, most, columns, mostColumns = 64, name } = limits
  const lines = text.split('\n').map((line) => line.trim()).filter(Boolean)
  const rows: number[][] = []
  for (const [place, line] of lines.entries()) {
    const words = line.replaceAll(/[[\](){}]/g, ' ').split(/[\s,;]+/).filter(Boolean)
    const wrong = words.find((word) => !NUMBER.test(word) || !Number.isFinite(Number(word.replace('−', '-'))))
    if (wrong !== undefined) return { problem: `Line ${place + 1}: “${wrong}” is no number.` }
    const many = `${words.length} ${words.length === 1 ? 'number' : 'numbers'}`
    if (columns !== undefined && words.length !== columns) return { problem: `Line ${place + 1} has ${many}; each ${name} here has ${columns}.` }
    if (rows.length && words.length !== rows[0].length) return { problem: `Line ${place + 1} has ${many}, line 1 has ${rows[0].length}; all must be of one length.` }
    if (words.length > mostColumns) return { problem: `Line ${place + 1} has ${many}; at most ${mostColumns} are shown here.` }
    rows.push(words.map((word) => Number(word.replace('−', '-'))))
  }
  if (rows.length < least || rows.length > most) {
    const wanted = least === most ? `${least}` : `${least} to ${most}`
    return { problem: `There ${rows.length === 1 ? 'is 1 line' : `are ${rows.length} lines`}; ${wanted} ${wanted === '1' ? 'is' : 'are'} needed, one for each ${name}.` }
  }
  return { rows }
}

/** What cos π/2 is on a machine, and people call 0. */
const ROUNDING = 1e-12

/** Rows as one types them. */
export function rowsShown(rows: readonly ArrayLike<number>[], digits = 5): string {
  const said = (value: number): string => (Math.abs(value) < ROUNDING ? '0' : String(Number(value.toPrecision(digits))))
  return rows.map((row) => Array.from(row, said).join(' ')).join('\n')
}

/** A number near `value` that is easier to say, if a step of a slider as large as `ratio` could skip it: 8 for 7.94. */
export function roundNear(value: number, ratio: number): number {
  const power = 10 ** Math.floor(Math.log10(value))
  const near = Math.round(value / power) * power
  return Math.abs(Math.log(near / value)) <= Math.log(ratio) / 2 ? Number(near.toPrecision(3)) : Number(value.toPrecision(3))
}
