/** Questions to the server: POSTs with JSON, and WebSockets that come back after a break. */

export class Refusal extends Error {
  constructor(
    message: string,
    readonly status: number,
  ) {
    super(message)
  }
}

/** Who answers: `heed serve`; on a site without a server, functions of the page itself. */
export const desk: { answer: ((path: string, question: any) => unknown) | null } = { answer: null }

export async function ask<T>(path: string, question: object = {}, signal?: AbortSignal): Promise<T> {
  if (desk.answer) return (await desk.answer(path, question)) as T
  let response: Response
  try {
    response = await fetch(`/api/${path}`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(question),
      signal,
    })
  } catch (error) {
    if (signal?.aborted) throw error
    throw new Refusal('The server does not answer. Is `heed serve` still running?', 0)
  }
  if (response.status === 401) throw new Refusal('This session has ended. Open the address that `heed serve` printed.', 401)
  const content = await response.json().catch(() => ({}))
  if (!response.ok) throw new Refusal(content.error ?? `The server answered ${response.status}.`, response.status)
  return content as T
}

/** Asks again and again, the newest question only: older ones are abandoned. */
export function latest<Q extends object, T>(path: string, delay: number, take: (found: T) => void, fail: (message: string) => void) {
  let timer: ReturnType<typeof setTimeout> | undefined
  let running: AbortController | undefined
  return {
    ask(question: Q): void {
      clearTimeout(timer)
      timer = setTimeout(async () => {
        running?.abort()
        const mine = (running = new AbortController())
        try {
          const found = await ask<T>(path, question, mine.signal)
          if (!mine.signal.aborted) take(found)
        } catch (error) {
          if (!mine.signal.aborted) fail(error instanceof Error ? error.message : String(error))
        }
      }, delay)
    },
    stop(): void {
      clearTimeout(timer)
      running?.abort()
    },
  }
}

/** A WebSocket that is opened again when the connection breaks. */
export function channel(path: string, heard: (message: any) => void, opened: (send: (message: object) => void) => void = () => {}) {
  let socket: WebSocket | undefined
  let closed = false
  let pause = 500
  let timer: ReturnType<typeof setTimeout> | undefined
  const send = (message: object): void => {
    if (socket?.readyState === WebSocket.OPEN) socket.send(JSON.stringify(message))
  }
  const open = (): void => {
    socket = new WebSocket(`ws://${location.host}/api/${path}`)
    socket.onopen = () => {
      pause = 500
      opened(send)
    }
    socket.onmessage = (event) => heard(JSON.parse(event.data))
    socket.onclose = (event) => {
      if (closed || event.code === 1008) return
      timer = setTimeout(open, pause)
      pause = Math.min(pause * 2, 8000)
    }
  }
  open()
  return {
    send,
    close(): void {
      closed = true
      clearTimeout(timer)
      socket?.close()
    },
  }
}

export interface Packed {
  shape: number[]
  float32?: string
  uint8?: string
}

export interface Unpacked {
  shape: number[]
  data: Float32Array | Uint8Array
}

/** The array that Python packed; one that was computed here is as it is. */
export function unpacked(packed: Packed | Unpacked): Unpacked {
  if ('data' in packed) return packed
  const text = atob(packed.float32 ?? packed.uint8 ?? '')
  const bytes = Uint8Array.from(text, (letter) => letter.charCodeAt(0))
  return { shape: packed.shape, data: packed.uint8 === undefined ? new Float32Array(bytes.buffer) : bytes }
}
