import { fork } from 'node:child_process'
import { FigureUnavailable, type Mode, type Result } from './figure.ts'

/** Input of a figure's process: JSON in the first argument of the process. */
export interface FigureRequest {
  readonly name: string
  readonly mode: Mode
  readonly folder: string
  readonly vendure: boolean
}

export type FigureReply =
  | { readonly result: Result }
  | { readonly error: Error }
  /** Reason why the figure cannot run on this machine. */
  | { readonly unavailable: string }

/** Time limit of a figure, ms. In full mode a figure first inserts a million rows. */
export const LIMITS_MS: Readonly<Record<Mode, number>> = { full: 7_200_000, quick: 900_000, smoke: 120_000 }

/**
 * Runs one figure in a separate process, so that a crash or hang ends only this figure. Rejects with the figure's
 * error, with `FigureUnavailable`, or with the exit state. Settles after the process has exited.
 */
export function runInProcess(program: string, request: FigureRequest, limitMs: number): Promise<Result> {
  return new Promise((resolve, reject) => {
    // JSON, the default, would turn NaN into null and lose the stack of an error.
    const child = fork(program, [JSON.stringify(request)], { execArgv: [], serialization: 'advanced' })
    let reply: FigureReply | undefined
    let isLate = false
    const timer = setTimeout(() => {
      isLate = true
      child.kill('SIGKILL')
    }, limitMs)
    child.once('message', (message) => (reply = message as FigureReply))
    child.once('error', reject)
    child.once('exit', (code, signal) => {
      clearTimeout(timer)
      if (reply && 'result' in reply) return resolve(reply.result)
      if (reply && 'unavailable' in reply) return reject(new FigureUnavailable(reply.unavailable))
      if (reply) return reject(reply.error)
      const ending = isLate ? `did not end within ${limitMs / 1_000} s` : `ended without a result (${code ?? signal})`
      reject(new Error(`the process of ${request.name} ${ending}`))
    })
  })
}
