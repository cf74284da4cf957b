/** What a text was before, so that every change can be undone: typing in bursts, the rest one by one. */

const BURST = 1200
/** Milliseconds: what is typed without a longer pause is undone together. */
const MOST = 300

export class History {
  #texts = $state.raw<string[]>([])
  #at = $state(0)
  #typed = 0

  constructor(first: string) {
    this.#texts = [first]
  }

  get now(): string {
    return this.#texts[this.#at]
  }

  get canUndo(): boolean {
    return this.#at > 0
  }

  get canRedo(): boolean {
    return this.#at < this.#texts.length - 1
  }

  /** Note a new text; `typed` if it is one keystroke of many. */
  add(text: string, typed = false): void {
    if (text === this.now) return
    const together = typed && this.#at > 0 && Date.now() - this.#typed < BURST
    const kept = this.#texts.slice(0, this.#at + (together ? 0 : 1)).slice(-MOST)
    this.#texts = [...kept, text]
    this.#at = kept.length
    this.#typed = typed ? Date.now() : 0
  }

  undo(): void {
    if (this.canUndo) this.#at -= 1
    this.#typed = 0
  }

  redo(): void {
    if (this.canRedo) this.#at += 1
    this.#typed = 0
  }
}

/** Where a text ends to differ from another: there the cursor belongs after an undo. */
export function changedEnd(before: string, after: string): number {
  let same = 0
  while (same < Math.min(before.length, after.length) && before.at(-1 - same) === after.at(-1 - same)) same += 1
  return after.length - same
}
