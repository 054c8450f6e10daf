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

/** Whoever answers requests at the other end; undefined while nobody listens there. */
export interface HttpServer {
  readonly process: Process | undefined
  answer(request: SimRequest): Promise<SimResponse>
}

/** A call that found no answer. */
export class NoAnswer extends Error {
  override name = 'NoAnswer'
}

/**
 * One HTTP request over the wire. Rejects when nobody listens, the connection breaks or `signal` aborts; waits
 * for ever when the request or its answer is lost, as a socket does. A request that the weather doubles is
 * carried out twice, as behind a proxy that tries again; the first answer counts.
 */
export function request(
  asked: SimRequest,
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
    // What a dead process asks reaches nobody.
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
      server.answer(asked).then(
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
