/** A claim as the fields of a form: TOML values as text that one types, and back. */

export type Kind = 'words' | 'line' | 'lines' | 'number' | 'vectors' | 'ranges' | 'formulas'
export type Values = Record<string, unknown>

export interface FormField {
  name: string
  label: string
  kind: Kind
  example: string
  /** Words to choose from, for keys and values. */
  choices?: readonly string[]
}

export interface FormClaim {
  line: number
  fields: Values
  defaults: Values
}

const KEYS = ['orthonormal', 'unit', 'any', 'gaussian'] as const

export const FIELDS: readonly FormField[] = [
  { name: 'id', label: 'Name', kind: 'words', example: '1b' },
  { name: 'says', label: 'In words', kind: 'words', example: 'What is claimed, as a sentence' },
  { name: 'keys', label: 'Keys', kind: 'vectors', example: '1 0\n0 1\n0.6 0.8', choices: KEYS },
  { name: 'values', label: 'Values', kind: 'vectors', example: '1 0\n0 1', choices: ['arbitrary', 'keys'] },
  { name: 'query', label: 'Query', kind: 'line', example: 'β (k_a + k_b) or \\beta (k_a + k_b)' },
  { name: 'heads', label: 'Heads', kind: 'lines', example: 'β k_a\nβ k_b' },
  { name: 'where', label: 'Where', kind: 'ranges', example: 'n = 3, 5, 10\nβ = large' },
  { name: 'given', label: 'Given', kind: 'line', example: 'n >= 3' },
  { name: 'expect', label: 'Expect', kind: 'lines', example: 'c \\approx \\frac12 (v_a + v_b)' },
  { name: 'find', label: 'Find', kind: 'line', example: 'least x' },
  { name: 'tolerance', label: 'Tolerance of ≈', kind: 'number', example: '0.05' },
]

export const RARE: readonly FormField[] = [
  { name: 'means', label: 'Means', kind: 'vectors', example: '1 0\n0 1', choices: ['orthonormal', 'unit', 'any'] },
  { name: 'covariance', label: 'Covariance', kind: 'formulas', example: 'a = s I + mu_a mu_a^T / 2\nothers = s I' },
  { name: 'scale', label: 'Scale of k·q', kind: 'number', example: 'sqrt_d' },
  { name: 'sequence', label: 'Sequence', kind: 'lines', example: 'u_a\nu_b' },
  { name: 'matrices', label: 'Matrices', kind: 'formulas', example: 'K = I\nV = u_b u_a^T' },
  { name: 'let', label: 'Let', kind: 'formulas', example: 'f(X) = relu(X W)' },
]

/** A value of TOML as the text of its field. */
export function textOf(kind: Kind, value: unknown): string {
  if (value === undefined || value === null) return ''
  switch (kind) {
    case 'lines':
      return Array.isArray(value) ? value.map(String).join('\n') : String(value)
    case 'vectors':
      return Array.isArray(value) ? value.map((row) => (Array.isArray(row) ? row.join(' ') : String(row))).join('\n') : String(value)
    case 'ranges':
    case 'formulas':
      if (typeof value !== 'object') return String(value)
      return Object.entries(value).map(([name, inner]) => `${name} = ${rangeText(inner)}`).join('\n')
    default:
      return String(value)
  }
}

function rangeText(value: unknown): string {
  if (!Array.isArray(value)) return String(value)
  return value.every((one) => typeof one === 'number') ? value.join(', ') : JSON.stringify(value)
}

/** The value that a text means; null if the field is empty, undefined while it is not finished. */
export function valueOf(kind: Kind, text: string): unknown {
  const lines = text.split('\n').map((line) => line.trim()).filter(Boolean)
  if (!lines.length) return null
  switch (kind) {
    case 'number':
      return numberIn(text) ?? text.trim()
    case 'lines':
      return lines
    case 'vectors':
      return vectorsOf(lines)
    case 'ranges':
    case 'formulas': {
      const pairs = lines.map((line) => [line.slice(0, line.indexOf('=')).trim(), line.slice(line.indexOf('=') + 1).trim()] as const)
      if (lines.some((line) => !line.includes('=')) || pairs.some(([name, inner]) => !name || !inner)) return undefined
      return Object.fromEntries(pairs.map(([name, inner]) => [name, kind === 'ranges' ? rangeOf(inner) : inner]))
    }
    case 'words':
      return lines.join(' ')
    default:
      return lines.length === 1 ? lines[0] : text.trim()
  }
}

function vectorsOf(lines: string[]): unknown {
  const rows = lines.map((line) => line.split(/[\s,;]+/).filter(Boolean).map(numberIn))
  if (rows.every((row) => row.length && row.every((entry) => entry !== null))) return rows
  return lines.length === 1 && /^[a-z]+$/.test(lines[0]) ? lines[0] : lines
}

function rangeOf(text: string): unknown {
  if (/^\[\s*"/.test(text)) {
    try {
      return JSON.parse(text)
    } catch {
      return text
    }
  }
  const parts = text.split(',').map((part) => numberIn(part))
  if (parts.some((part) => part === null)) return text
  return parts.length === 1 ? parts[0] : parts
}

function numberIn(text: string): number | null {
  const plain = text.trim().replace('−', '-')
  return /^[-+]?(?:\d+\.?\d*|\.\d+)(?:e[-+]?\d+)?$/i.test(plain) ? Number(plain) : null
}

/** A name that no claim has yet. */
export function newName(claims: readonly FormClaim[]): string {
  const taken = new Set(claims.map((claim) => String(claim.fields.id)))
  for (let number = claims.length + 1; ; number += 1) if (!taken.has(`claim ${number}`)) return `claim ${number}`
}
