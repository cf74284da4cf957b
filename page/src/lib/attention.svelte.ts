/** The state of view 1: keys, queries and noise, what the page works out, and what it asks for. */

import { about, type KeySet } from './about'
import { address, listOf, numberOf, remember, rowsOf, rowsText, short, wholeOf } from './address.svelte'
import { ask, latest } from './api'
import {
  matrix, mix, movedTo, noisyOutputs, normalNumbers, normalsPerDraw, project, read, type Noise, type Point,
} from './mathematics'

export interface Scene {
  keys: number[][]
  values: Point[]
  plane: number[][]
  shown: number
  copyable: boolean[]
}

export interface LayerNoise {
  method: 'exact' | 'sampled'
  reason: string | null
  draws: number
  weights_mean: number[]
  weights_std: number[]
  mean: number[]
  covariance: number[][] | null
  target: number[]
  failure: number
  failure_low: number
  failure_high: number
  sampled_failure: number
  error: number
  squared_bias: number
  limit_failure: number | null
}

export interface Certificate {
  kind: string
  statement: string
  margin: number | null
  combination: Record<string, number> | null
  ceiling: number | null
  floor: number | null
  closed_form: string | null
  best_mass: number | null
  norm_lower_bound: number | null
}

export interface DesignAnswer {
  kind: 'copy' | 'average' | 'robust'
  design?: {
    feasible: boolean
    beta: number | null
    query: number[] | null
    norm: number | null
    mass: number | null
    error: number | null
    tolerance: number
    of: number[]
    certificate: Certificate
  }
  heads?: {
    queries: number[][]
    error: number
    expected_squared_error: number
    variance: number
    squared_bias: number
    mass: number
    certificate: { statement: string; method: string }
    comparison: { name: string; error: number }[]
  }
}

/** The name of a standard set of keys, or rows of your own. */
export type Kind = string

const DRAWS = 320
/** Lengths of a query that the page shows. */
export const [LEAST_BETA, MOST_BETA] = [0.1, 400]
export const MOST_HEADS = 4

export class AttentionState {
  kind = $state<Kind>('circle')
  n = $state(8)
  d = $state(2)
  seed = $state(0)
  rows = $state.raw<number[][] | null>(null)
  values = $state<'keys' | 'circle' | 'rows'>('keys')
  /** Values of your own, where they are typed. */
  valueRows = $state.raw<Point[] | null>(null)
  plane = $state<'auto' | 'round' | 'principal' | 'keys'>('auto')

  beta = $state(8)
  scaled = $state(false)
  heads = $state(1)
  directions = $state.raw<number[][]>([])
  chosen = $state.raw<number[]>([0, 1])

  noisy = $state(0)
  variance = $state(0.5)
  isotropic = $state(0)
  radius = $state(0.1)
  tolerance = $state(0.01)

  scene = $state.raw<Scene | null>(null)
  noise = $state.raw<LayerNoise[] | null>(null)
  stale = $state(false)
  designed = $state.raw<DesignAnswer | null>(null)
  designing = $state(false)
  /** What went wrong, kept apart so that each is said beside what it is about. */
  trouble = $state({ scene: '', noise: '', design: '' })

  #asksScene = latest<object, Scene>('attention/scene', 60, (found) => this.#arrive(found), (problem) => (this.trouble.scene = problem))
  #asksNoise = latest<object, { layers: LayerNoise[] }>('attention/noise', 130, (found) => {
    this.noise = found.layers
    this.stale = false
    this.trouble.noise = ''
  }, (problem) => (this.trouble.noise = problem))

  constructor() {
    this.restore(address.values)
  }

  /** The dimension that the chosen kind of keys needs. */
  get dimension(): number {
    const surplus = this.set?.surplus ?? null
    if (surplus !== null) return Math.max(this.d, this.n - surplus)
    return this.kind === 'rows' && this.rows ? this.rows[0].length : this.d
  }

  /** The standard set that is shown; undefined for rows of your own. */
  get set(): KeySet | undefined {
    return about.keys.find(({ name }) => name === this.kind)
  }

  /** The fewest dimensions in which so many keys of this kind exist. */
  get leastDimension(): number {
    const surplus = this.set?.surplus ?? null
    return surplus === null ? 2 : Math.max(2, this.n - surplus)
  }

  /** How many keys may be asked for: sets that need a dimension a key are kept small. */
  get most(): number {
    return (this.set?.surplus ?? null) === null ? 64 : 16
  }

  keys = $derived(matrix(this.scene?.keys ?? []))
  points = $derived<Point[]>(this.scene ? project(this.keys, this.scene.plane) : [])
  valuePoints = $derived<Point[]>(this.scene?.values ?? [])
  scale = $derived(this.scaled ? 1 / Math.sqrt(this.keys.columns || 1) : 1)
  queries = $derived(this.directions.map((direction) => direction.map((entry) => entry * this.beta)))
  handles = $derived<Point[]>(this.scene ? project(matrix(this.directions), this.scene.plane) : [])
  reading = $derived(read(this.keys, this.valuePoints, this.queries, this.scale))
  target = $derived<Point | null>(this.chosen.length ? mix(shares(this.chosen, this.keys.rows), this.valuePoints) : null)
  distance = $derived(this.target ? Math.hypot(this.reading.output[0] - this.target[0], this.reading.output[1] - this.target[1]) : null)
  mass = $derived(this.chosen.reduce((sum, i) => sum + (this.reading.weights[i] ?? 0), 0))

  isNoisy = $derived((this.noisy >= 0 && this.noisy < this.keys.rows && this.variance > 0) || this.isotropic > 0)
  noiseNow = $derived<Noise>({
    key: this.noisy < this.keys.rows ? this.noisy : -1,
    variance: this.variance,
    isotropic: this.isotropic,
  })

  /** One head beside several: with one query, a head for each chosen key; else the sum of the queries. */
  layers = $derived.by<number[][][]>(() => {
    if (!this.scene || this.queries.length === 0) return []
    if (this.heads > 1) {
      const sum = this.queries[0].map((_, j) => this.queries.reduce((total, query) => total + query[j], 0))
      return [[sum], this.queries]
    }
    const each = this.chosen.filter((i) => i < this.keys.rows).slice(0, 8)
    const own = each.map((i) => this.scene!.keys[i].map((entry) => entry * this.beta))
    return own.length > 1 ? [this.queries, own] : [this.queries]
  })
  #normals = $derived(normalNumbers(DRAWS * normalsPerDraw(this.keys, { key: 0, variance: 1, isotropic: this.isotropic }), 7))
  clouds = $derived(
    this.layers.map((queries) => noisyOutputs(this.keys, this.valuePoints, queries, this.scale, this.noiseNow, this.#normals)),
  )

  /** What a saved picture says about how it came about. */
  settings = $derived.by<string[]>(() => {
    const kind = this.kind === 'rows' ? 'typed or moved' : (this.set?.label ?? this.kind)
    const noisy = this.noiseNow.key >= 0 && this.variance > 0
    return [
      `${this.keys.rows} keys in ${this.keys.columns} dimensions (${kind}${this.set?.random ? `, seed ${this.seed}` : ''})`,
      `β = ${short(this.beta)}`,
      this.scaled ? 's = 1/√d' : 's = 1',
      ...this.queries.slice(0, MOST_HEADS).filter((query) => query.length <= 4).map((query, h) => `q${this.heads > 1 ? h + 1 : ''} = (${query.map((entry) => short(entry, 3)).join(', ')})`),
      `c = (${this.reading.output.map((entry) => short(entry, 3)).join(', ')})`,
      ...(this.chosen.length ? [`wanted: ${this.chosen.length === 1 ? 'value' : 'average of values'} ${this.chosen.join(', ')}`] : []),
      ...(noisy ? [`key ${this.noiseNow.key} noisy along itself, v = ${short(this.variance)}`] : []),
      ...(this.isotropic ? [`noise in every direction, σ² = ${short(this.isotropic)}`] : []),
    ]
  })

  certificate = $derived.by(() => {
    const found = this.designed?.design
    if (!found || found.feasible || !found.certificate.combination || !this.scene) return null
    const lambda = new Float64Array(this.keys.rows)
    for (const [i, share] of Object.entries(found.certificate.combination)) lambda[Number(i)] = share
    return { inside: mix(lambda, this.points), weights: found.certificate.combination }
  })

  restore(values: Record<string, string>): void {
    const rows = rowsOf(values.rows)
    this.kind = rows ? 'rows' : about.keys.some(({ name }) => name === values.keys) ? values.keys : 'circle'
    this.rows = rows
    this.n = rows ? rows.length : wholeOf(values.n, 8, 2, 64)
    this.d = rows ? rows[0].length : wholeOf(values.d, 2, 2, 16)
    this.seed = wholeOf(values.seed, 0, 0, 999)
    const own = rowsOf(values.vrows)
    this.valueRows = own && own.length === this.n && own[0].length === 2 ? (own as Point[]) : null
    this.values = this.valueRows ? 'rows' : values.values === 'circle' ? 'circle' : 'keys'
    this.plane = (['round', 'principal', 'keys'] as const).find((name) => name === values.plane) ?? 'auto'
    this.beta = numberOf(values.beta, 8, LEAST_BETA, MOST_BETA)
    this.scaled = values.scale === 'sqrt_d'
    this.directions = rowsOf(values.q) ?? []
    this.heads = this.directions.length || wholeOf(values.heads, 1, 1, MOST_HEADS)
    this.chosen = values.of === undefined ? [0, 1] : listOf(values.of, this.n)
    this.noisy = wholeOf(values.noisy, 0, -1, this.n - 1)
    this.variance = numberOf(values.variance, 0.5, 0, 2)
    this.isotropic = numberOf(values.isotropic, 0, 0, 0.25)
    this.radius = numberOf(values.radius, 0.1, 0.01, 1)
    this.tolerance = numberOf(values.tolerance, 0.01, 1e-6, 0.5)
  }

  /** Everything that the address must hold to bring this view back. */
  written = $derived.by<Record<string, string>>(() => {
    const found: Record<string, string> = {}
    if (this.kind === 'rows' && this.rows) found.rows = rowsText(this.rows)
    else {
      found.keys = this.kind
      found.n = String(this.n)
      if (this.dimension !== 2) found.d = String(this.d)
      if (this.set?.random) found.seed = String(this.seed)
    }
    if (this.values === 'rows' && this.valueRows) found.vrows = rowsText(this.valueRows)
    else if (this.values !== 'keys') found.values = this.values
    if (this.plane !== 'auto') found.plane = this.plane
    found.beta = short(this.beta)
    if (this.scaled) found.scale = 'sqrt_d'
    found.q = rowsText(this.directions)
    found.of = this.chosen.join(',')
    found.noisy = String(this.noisy)
    found.variance = short(this.variance)
    if (this.isotropic) found.isotropic = short(this.isotropic)
    found.radius = short(this.radius)
    if (this.tolerance !== 0.01) found.tolerance = short(this.tolerance)
    return found
  })

  /** Called in effects: each reads what it depends on. */
  askScene(): void {
    this.#asksScene.ask({
      ...(this.kind === 'rows' ? { kind: 'rows', rows: this.rows } : { kind: this.kind, n: this.n, d: this.dimension, seed: this.seed }),
      values: this.values !== 'rows' ? this.values : this.valueRows?.length === this.n ? this.valueRows : 'keys',
      ...(this.plane === 'keys' && this.chosen.length >= 2
        ? { plane: 'keys', through: this.chosen.slice(0, 2) }
        : { plane: this.plane === 'keys' ? 'auto' : this.plane }),
    })
  }

  askNoise(): void {
    const layers = this.layers
    if (!this.scene || layers.length === 0) return
    this.stale = true
    this.#asksNoise.ask({
      keys: this.scene.keys,
      values: this.valuePoints,
      scale: this.scaled ? 'sqrt_d' : 1,
      noisy: this.noiseNow.key >= 0 ? this.noiseNow.key : null,
      variance: this.variance,
      isotropic: this.isotropic,
      layers,
      of: this.chosen,
      radius: this.radius,
    })
  }

  save(): void {
    if (this.scene) remember('attention', this.written)
  }

  stop(): void {
    this.#asksScene.stop()
    this.#asksNoise.stop()
  }

  #arrive(found: Scene): void {
    const d = found.keys[0].length
    this.trouble.scene = ''
    this.scene = found
    this.noise = null
    if (this.valueRows && this.valueRows.length !== found.keys.length) this.forgetValues()
    this.chosen = this.chosen.filter((i) => i < found.keys.length)
    if (this.noisy >= found.keys.length) this.noisy = -1
    if (this.directions.length !== this.heads || this.directions[0]?.length !== d) this.aim()
  }

  /** Point the heads at the chosen keys: one head at their sum, several at one each. */
  aim(): void {
    const keys = this.scene?.keys
    if (!keys) return
    const wanted = this.chosen.length ? this.chosen : [0]
    if (this.heads === 1) {
      const sum = keys[0].map((_, j) => wanted.reduce((total, i) => total + keys[i][j], 0))
      const length = wanted.reduce((total, i) => total + Math.hypot(...keys[i]), 0) / wanted.length
      const now = Math.hypot(...sum)
      this.directions = [now > 1e-9 ? sum.map((entry) => (entry * length) / now) : [...keys[wanted[0]]]]
    } else {
      this.directions = Array.from({ length: this.heads }, (_, h) => [...keys[wanted[h % wanted.length]]])
    }
  }

  setHeads(count: number): void {
    if (count === this.heads) return
    this.heads = count
    this.designed = null
    this.aim()
  }

  moveQuery(head: number, to: Point): void {
    if (!this.scene) return
    const plane = this.scene.plane
    this.directions = this.directions.map((vector, h) => (h === head ? movedTo(vector, to, plane) : vector))
    if (this.designed?.design?.feasible || this.designed?.heads) this.designed = null
  }

  /** Keys of the plane can be moved: they become keys of your own. */
  moveKey(key: number, to: Point): void {
    if (!this.scene || this.keys.columns !== 2) return
    const rows = this.scene.keys.map((row, i) => (i === key ? [Number(to[0].toFixed(3)), Number(to[1].toFixed(3))] : row))
    this.scene = { ...this.scene, keys: rows, values: this.values === 'keys' ? (rows as Point[]) : this.scene.values }
    this.kind = 'rows'
    this.rows = rows
    this.designed = null
  }

  /** Keys as they were typed, of any dimension; values of your own are kept where they still fit. */
  typeKeys(rows: number[][]): void {
    if (rows.length !== this.valueRows?.length) this.forgetValues()
    if (this.noisy >= rows.length) this.noisy = -1
    this.kind = 'rows'
    this.rows = rows
    this.n = rows.length
    this.d = rows[0].length
    this.designed = null
  }

  typeValues(rows: number[][]): void {
    this.valueRows = rows as Point[]
    this.values = 'rows'
    this.designed = null
  }

  /** Queries as they were typed, a row a head. β becomes the length of the longest; what is wrong, if anything. */
  typeQueries(rows: number[][]): string | void {
    const longest = Math.max(...rows.map((row) => Math.hypot(...row)))
    if (longest > MOST_BETA) return `The longest has length ${Number(longest.toPrecision(4))}; at most ${MOST_BETA} are shown here.`
    this.heads = rows.length
    if (longest >= LEAST_BETA) this.beta = longest
    this.directions = rows.map((row) => row.map((entry) => entry / this.beta))
    this.designed = null
  }

  forgetValues(): void {
    if (this.values === 'rows') this.values = 'keys'
    this.valueRows = null
  }

  choose(key: number): void {
    this.chosen = this.chosen.includes(key) ? this.chosen.filter((i) => i !== key) : [...this.chosen, key].sort((a, b) => a - b)
    this.designed = null
  }

  setKind(kind: Kind): void {
    this.kind = kind
    this.rows = null
    this.forgetValues()
    this.directions = []
    this.designed = null
    this.n = Math.min(this.n, this.most)
  }

  async design(kind: 'copy' | 'average' | 'robust'): Promise<void> {
    if (!this.scene) return
    this.designing = true
    this.trouble.design = ''
    const heads = kind === 'robust' ? Math.max(2, this.heads) : 1
    try {
      const found = await ask<DesignAnswer>('attention/design', {
        kind,
        of: kind === 'copy' ? this.chosen.slice(0, 1) : this.chosen,
        keys: this.scene.keys,
        ...(kind === 'robust'
          ? { values: this.valuePoints, noisy: this.noiseNow.key >= 0 ? this.noiseNow.key : null, variance: this.variance, isotropic: this.isotropic }
          : {}),
        scale: this.scaled ? 'sqrt_d' : 1,
        tolerance: this.tolerance,
        heads,
        norm: Math.max(this.beta, 1),
      })
      this.#apply(found)
      this.designed = found
    } catch (error) {
      this.designed = null
      this.trouble.design = error instanceof Error ? error.message : String(error)
    } finally {
      this.designing = false
    }
  }

  #apply(found: DesignAnswer): void {
    if (found.heads) {
      this.heads = found.heads.queries.length
      this.directions = found.heads.queries.map((query) => query.map((entry) => entry / this.beta))
    } else if (found.design?.query) {
      const length = Math.hypot(...found.design.query)
      const beta = Math.min(MOST_BETA, Math.max(LEAST_BETA, length))
      this.heads = 1
      this.beta = beta
      this.directions = [found.design.query.map((entry) => entry / beta)]
    }
  }
}

function shares(chosen: readonly number[], n: number): Float64Array {
  const result = new Float64Array(n)
  for (const i of chosen) if (i < n) result[i] = 1 / chosen.length
  return result
}
