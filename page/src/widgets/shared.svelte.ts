/** What a widget shares with Python: read here as state, written back a few times a second. */

export interface Model {
  get(name: string): unknown
  set(name: string, value: unknown): void
  save_changes(): void
  on(event: string, heard: () => void): void
  off(event: string, heard: () => void): void
}

/** Milliseconds between two messages to Python during a drag: it is asked for the last place only. */
const PAUSE = 50

export class Shared {
  #model: Model
  #values = $state.raw<Record<string, unknown>>({})
  #heard: [string, () => void][] = []
  #timer: ReturnType<typeof setTimeout> | undefined

  constructor(model: Model) {
    this.#model = model
  }

  /** A value that Python has; whoever reads it is drawn again when it changes on either side. */
  get<T>(name: string): T {
    if (!this.#heard.some(([known]) => known === name)) {
      const heard = (): void => {
        this.#values = { ...this.#values, [name]: this.#model.get(name) }
      }
      this.#heard.push([name, heard])
      this.#model.on(`change:${name}`, heard)
    }
    return (name in this.#values ? this.#values[name] : this.#model.get(name)) as T
  }

  /** Change values here now, and in Python soon. */
  set(values: Record<string, unknown>): void {
    this.#values = { ...this.#values, ...values }
    for (const [name, value] of Object.entries(values)) this.#model.set(name, value)
    this.#timer ??= setTimeout(() => {
      this.#timer = undefined
      this.#model.save_changes()
    }, PAUSE)
  }

  close(): void {
    for (const [name, heard] of this.#heard) this.#model.off(`change:${name}`, heard)
    if (this.#timer !== undefined) {
      clearTimeout(this.#timer)
      this.#model.save_changes()
    }
  }
}

/** The numbers that Python sent as bytes of float32. */
export function floats(view: DataView | null | undefined): Float32Array {
  if (!view || view.byteLength === 0) return new Float32Array()
  return new Float32Array(view.buffer.slice(view.byteOffset, view.byteOffset + view.byteLength))
}
