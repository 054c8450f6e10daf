import type { Process } from './machine.ts'
import type { Scheduler } from './scheduler.ts'
import type { Wire } from './wire.ts'

export interface SimRequest {
  url: string
  method: string
  headers: Record<string, string>
  body?: string
}

export interface SimResponse {
  status: number
  text: string
}

/** Server of HTTP requests. `process` is undefined while no process listens. */
export interface HttpServer {
  readonly process: Process | undefined
  answer(request: SimRequest): Promise<SimResponse>
}

/** Thrown if a request gets no answer. */
export class NoAnswer extends Error {
  override name = 'NoAnswer'
}

/**
 * Sends one HTTP request over the wire. Rejects if no process listens, the connection breaks or `signal` aborts. If the
 * request or the answer is lost, settles only when one of these events happens, as with a real socket. A duplicated
 * request runs twice, as behind a proxy that retries. The caller receives the first answer.
 */
export function request(
  message: SimRequest,
  {
    wire,
    server,
    scheduler,
    signal,
    by,
  }: { wire: Wire; server: HttpServer; scheduler: Scheduler; signal?: AbortSignal; by?: Process },
): Promise<SimResponse> {
  return new Promise((resolve, reject) => {
    const isThere = () => by === undefined || by.isAlive
    // A dead process sends no request.
    if (!isThere()) return
    const fail = (why: string) => {
      if (isThere()) reject(new NoAnswer(why))
    }
    const onAbort = () => fail('the caller gave up')
    signal?.addEventListener('abort', onAbort, { once: true })
    wire.carry(false, () => {
      const { process } = server
      if (!process?.isAlive) return void scheduler.after(1, () => fail('connection refused'))
      const forget = process.onEnd(() => void scheduler.after(1, () => fail('connection reset')))
      server.answer(message).then(
        (answer) => {
          if (!process.isAlive) return
          wire.carry(true, () => {
            forget()
            signal?.removeEventListener('abort', onAbort)
            if (isThere()) resolve(answer)
          })
        },
        (error: unknown) => fail(String(error)),
      )
    })
  })
}
