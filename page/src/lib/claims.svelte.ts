/** The state of view 2: a sheet as it is written, verdicts as they come, the catalog. */

import { address, go, remember, rowsText, short } from './address.svelte'
import { ask, channel } from './api'
import type { FormClaim } from './form'
import { History } from './history.svelte'
import type { Model } from './models.svelte'

export type Word = 'proved' | 'supported' | 'refuted' | 'undecided'
export const WORDS: Word[] = ['proved', 'supported', 'refuted', 'undecided']

export interface Picture {
  keys: number[][]
  queries: number[][]
  scale?: number | 'sqrt_d'
  noisy?: number
  variance?: number
  of?: number[]
}

export interface Verdict {
  sheet: string
  id: string
  says: string
  expects: string
  verdict: Word
  /** What it says about the source: true, false, or so at a number that is ours. */
  kind: string
  seconds: number
  evidence: { method: string; statement: string; steps: string[]; numbers: Record<string, unknown>; draws: number | null; seed: number | null }
  counterexample: { statement: string; gap: number; command: string | null; symbols: Record<string, unknown>; left: unknown; right: unknown } | null
  repair: { kind: string; statement: string; changes: Record<string, unknown>; verdict: Word } | null
  repair_lines: string | null
  picture: Picture | null
}

export interface ClaimText {
  id: string
  says: string
  source: string
  reading: string
  number: string
  formulas: { text: string; tex: string }[]
  given: string | null
  setting: string
  line: number
  text?: string
}

export interface Problem {
  sheet: string
  line: number | null
  column: number | null
  message: string
}

export interface CatalogSheet {
  name: string
  title: string
  source: string
  /** What is not judged here, because its model was not trained. */
  skipped: string
  claims: ClaimText[]
}

/** Which claims of the catalog are shown. */
export class CatalogFilter {
  search = $state(address.values.search ?? '')
  only = $state<'' | Word>(WORDS.find((word) => word === address.values.only) ?? '')
  sheet = $state(address.values.in ?? '')

  /** What the address must hold to bring it back. */
  get written(): Record<string, string> {
    return { ...(this.search ? { search: this.search } : {}), ...(this.only ? { only: this.only } : {}), ...(this.sheet ? { in: this.sheet } : {}) }
  }
}

export const EXAMPLE = `title = "My answers"

[defaults]
keys = "orthonormal"
where = { n = 10 }

[[claim]]
id = "b"
says = "The query k_a + k_b averages two values."
query = "k_a + k_b"
expect = "c ≈ (v_a + v_b)/2 within 0.01"

[[claim]]
id = "copy"
says = "A long query along one key copies its value."
query = "beta k_a"
where = { n = 10, beta = "large" }
expect = "c ≈ v_a within 0.01"
`

/** What a sheet about a model looks like: shown when one is chosen and nothing was written yet. */
export const MODEL_EXAMPLE = `title = "About this model"

[[claim]]
id = "previous"
says = "Head 1 always gives the token before it a tenth of its reading."
expect = "alpha(1, 1)[t, t-1] >= 0.1 for every text up to 6 tokens"

[[claim]]
id = "least"
says = "How little can it be?"
find = "greatest x"
expect = "alpha(1, 1)[t, t-1] >= x for every text up to 6 tokens"

[[claim]]
id = "one"
says = "The weights of a query add up to 1."
expect = "sum(alpha(1, h)[t, s], s) = 1 for every text up to 6 tokens"
`

export type Tab = 'write' | 'assignment' | 'catalog' | 'seeds'
/** What stands beside the verdicts: the text of the sheet, a form, or both. */
export type Side = 'text' | 'form' | 'both'

/** On a phone the verdicts would stand below both. */
const USUAL: Side = matchMedia('(max-width: 900px)').matches ? 'text' : 'both'

export class ClaimsState {
  history = new History(EXAMPLE)
  /** The name of the file that was opened, if any. */
  file = $state('')
  /** The claims as the form shows them. */
  form = $state.raw<FormClaim[]>([])
  /** Which of them. */
  place = $state(0)
  side = $state<Side>(USUAL)
  /** The id of the model that the sheet is about; none: attention itself. */
  model = $state('')
  models = $state.raw<Model[]>([])
  title = $state('')
  claims = $state.raw<ClaimText[]>([])
  problems = $state.raw<Problem[]>([])
  verdicts = $state.raw<Record<string, Verdict>>({})
  judging = $state(false)
  seconds = $state<number | null>(null)
  trouble = $state('')

  tab = $state<Tab>('write')
  catalog = $state.raw<CatalogSheet[]>([])
  disagreements = $state.raw<[string, string][]>([])
  judged = $state.raw<Record<string, Verdict>>({})
  filter = new CatalogFilter()

  #last = 0
  #typed = -1
  #browsing = -1
  #timer: ReturnType<typeof setTimeout> | undefined
  #asked = ''
  /** The text that the newest question was about. */
  #sent = ''
  #live = channel('claims/live', (message) => this.#hear(message), () => this.#opened())

  constructor() {
    const values = address.values
    this.model = values.about ?? ''
    const example = this.model ? MODEL_EXAMPLE : EXAMPLE
    this.history = new History(values.sheet === undefined ? example : decoded(values.sheet) ?? example)
    void this.#list()
    if (values.tab === 'catalog' || values.tab === 'seeds' || values.tab === 'assignment') this.tab = values.tab
    if (values.side === 'text' || values.side === 'form' || values.side === 'both') this.side = values.side
  }

  total = $derived(this.catalog.reduce((sum, sheet) => sum + sheet.claims.length, 0))
  known = $derived(Object.keys(this.judged).length)

  get text(): string {
    return this.history.now
  }

  /** Replace the text as one change, which one undo takes back. */
  set text(text: string) {
    this.history.add(text)
  }

  /** Take what was typed. */
  type(text: string): void {
    this.history.add(text, true)
  }

  untouched = $derived(this.text === (this.model ? MODEL_EXAMPLE : EXAMPLE))

  /** Say which model the sheet is about; a sheet that nobody has changed becomes one about it. */
  choose(model: string): void {
    const untouched = this.untouched
    this.model = model
    if (untouched) this.text = model ? MODEL_EXAMPLE : EXAMPLE
  }

  async #list(): Promise<void> {
    try {
      this.models = (await ask<{ models: Model[] }>('models/list')).models
    } catch {
      this.models = [] // the field is only offered where there are models
    }
  }

  save(): void {
    remember('claims', {
      ...(this.side === USUAL ? {} : { side: this.side }),
      ...(this.tab === 'write' ? (this.untouched ? {} : { sheet: encoded(this.text) }) : { tab: this.tab }),
      ...(this.tab === 'write' && this.model ? { about: this.model } : {}),
      ...(this.tab === 'catalog' ? this.filter.written : {}),
    })
  }

  /** Judge the text as it is now, once typing pauses. */
  judge(): void {
    const text = this.text
    const about = this.model ? { model: this.model } : {}
    const question = JSON.stringify([text, about])
    clearTimeout(this.#timer)
    this.#timer = setTimeout(() => {
      if (question === this.#asked) return
      this.#asked = question
      this.#sent = text
      this.judging = true
      this.#live.send({ ticket: (this.#typed = ++this.#last), text, ...about })
    }, 350)
  }

  stop(): void {
    this.#live.send({ ticket: this.#typed, stop: true })
    this.judging = false
  }

  close(): void {
    clearTimeout(this.#timer)
    this.#live.close()
  }

  async browse(): Promise<void> {
    if (this.catalog.length) return
    try {
      const found = await ask<{ sheets: CatalogSheet[]; disagreements: [string, string][] }>('claims/catalog')
      this.catalog = found.sheets
      this.disagreements = found.disagreements
      this.#browsing = ++this.#last
      this.#live.send({ ticket: this.#browsing, catalog: true })
    } catch (error) {
      this.trouble = error instanceof Error ? error.message : String(error)
    }
  }

  /** Write a repair into the sheet; it is then judged like anything typed. */
  async repair(verdict: Verdict): Promise<void> {
    if (!verdict.repair) return
    try {
      const found = await ask<{ text: string }>('claims/repair', { text: this.text, id: verdict.id, changes: verdict.repair.changes })
      this.text = found.text
      this.trouble = ''
    } catch (error) {
      this.trouble = error instanceof Error ? error.message : String(error)
    }
  }

  /** Write what the form says into the sheet; null takes the claim out. */
  async edit(place: number, changes: Record<string, unknown> | null): Promise<void> {
    try {
      const before = this.text
      const found = await ask<{ text: string }>('claims/edit', { text: before, place, changes })
      if (this.text !== before) return await this.edit(place, changes) // the text was changed meanwhile
      this.history.add(found.text, changes !== null)
      this.trouble = ''
      // The form follows at once; the server says the same when it has read the sheet.
      this.#asked = ''
      this.form = changes === null
        ? this.form.filter((_, i) => i !== place)
        : this.form.map((one, i) => (i === place ? { ...one, fields: merged(one.fields, changes) } : one))
      if (changes === null) this.place = Math.max(0, place - 1)
    } catch (error) {
      this.trouble = error instanceof Error ? error.message : String(error)
    }
  }

  /** Begin a claim at the end of the sheet. */
  begin(name: string): void {
    const kept = this.text.trimEnd()
    this.text = `${kept}${kept ? '\n\n' : ''}[[claim]]\nid = ${JSON.stringify(name)}\nexpect = "1 = 1"\n`
    this.form = [...this.form, { line: this.text.split('\n').length - 2, fields: { id: name, expect: '1 = 1' }, defaults: this.form[0]?.defaults ?? {} }]
    this.place = this.form.length - 1
    this.#asked = ''
  }

  /** Put a claim of the catalog into the editor. */
  take(claim: ClaimText): void {
    const name = claim.text ?? ''
    const anew = this.untouched || this.text.trim() === ''
    this.model = '' // the claims of the catalog name theirs, where they are about one
    this.text = anew ? name : `${this.text.trimEnd()}\n\n${name}`
    this.tab = 'write'
  }

  /** Take the form of the text that was asked about, unless the text has changed since. */
  #fill(form: FormClaim[]): void {
    if (this.text !== this.#sent) {
      this.#asked = '' // undone meanwhile, the same text is asked about again
      return
    }
    this.form = form
    if (this.place >= form.length) this.place = Math.max(0, form.length - 1)
  }

  #opened(): void {
    this.#asked = ''
    this.judge()
    if (this.catalog.length && this.known < this.total) {
      this.#browsing = ++this.#last
      this.#live.send({ ticket: this.#browsing, catalog: true })
    }
  }

  #hear(message: any): void {
    if (message.ticket === this.#browsing) {
      if (message.kind === 'verdict') {
        const found = message.verdict as Verdict
        this.judged = { ...this.judged, [`${found.sheet}/${found.id}`]: found }
      }
      return
    }
    if (message.ticket !== this.#typed && message.kind !== 'error') return
    if (message.kind === 'sheet') {
      this.title = message.title
      this.claims = message.claims
      this.problems = message.problems
      this.#fill(message.form)
      // Verdicts on claims that are still there stay until the new ones come.
      const kept = Object.entries(this.verdicts).filter(([id]) => this.claims.some((claim) => claim.id === id))
      this.verdicts = Object.fromEntries(kept)
    } else if (message.kind === 'verdict') this.verdicts = { ...this.verdicts, [message.verdict.id]: message.verdict }
    else if (message.kind === 'problem') {
      this.problems = [...this.problems, message.problem]
      const { [message.id]: _, ...rest } = this.verdicts
      this.verdicts = rest
    } else if (message.kind === 'done') {
      this.judging = false
      this.seconds = message.seconds
    } else if (message.kind === 'error') this.trouble = message.message
  }
}

function merged(fields: Record<string, unknown>, changes: Record<string, unknown>): Record<string, unknown> {
  return Object.fromEntries(Object.entries({ ...fields, ...changes }).filter(([, value]) => value !== null))
}

/** Draw a counterexample in view 1. */
export function draw(picture: Picture): void {
  const d = picture.keys[0].length
  const longest = Math.max(...picture.queries.map((query) => Math.hypot(...query)), 0.1)
  const unit = picture.keys.every((row, i) => row.every((entry, j) => entry === (i === j ? 1 : 0)))
  const values: Record<string, string> = unit
    ? { keys: 'orthonormal', n: String(picture.keys.length), d: String(d) }
    : { rows: rowsText(d === 1 ? picture.keys.map((row) => [...row, 0]) : picture.keys, 6) }
  values.beta = short(longest)
  if (picture.queries.length) {
    const padded = picture.queries.map((query) => (d === 1 ? [...query, 0] : query))
    values.q = rowsText(padded.map((query) => query.map((entry) => entry / longest)), 6)
  }
  if (picture.scale === 'sqrt_d') values.scale = 'sqrt_d'
  values.noisy = String(picture.noisy ?? -1)
  if (picture.variance !== undefined) values.variance = short(picture.variance)
  values.of = (picture.of ?? []).join(',')
  go('attention', values)
}

function encoded(text: string): string {
  return btoa(Array.from(new TextEncoder().encode(text), (byte) => String.fromCharCode(byte)).join('')).replaceAll('+', '-').replaceAll('/', '_').replaceAll('=', '')
}

function decoded(text: string): string | null {
  try {
    const bytes = atob(text.replaceAll('-', '+').replaceAll('_', '/'))
    return new TextDecoder('utf-8', { fatal: true }).decode(Uint8Array.from(bytes, (letter) => letter.charCodeAt(0)))
  } catch {
    return null
  }
}
