import type { Clock } from './platform.ts'

/** Maximum number of free turns after a task. */
const FREE_TURNS_LIMIT = 200

/**
 * Calls `then` after as many free turns of the event loop as a task that began at `startMs` has blocked it for ms. In one
 * turn Node.js accepts one connection: with one turn between long tasks, new connections of all clients would wait for
 * those of the busiest. Other work may fill these turns, so they end after the same time, too.
 */
export function afterFreeTurns(clock: Pick<Clock, 'elapsed'>, startMs: number, then: () => void): void {
  const endMs = clock.elapsed()
  let left = Math.min(FREE_TURNS_LIMIT, Math.floor(endMs - startMs))
  const untilMs = 2 * endMs - startMs
  const turn = () => {
    if (left-- > 0 && clock.elapsed() <= untilMs) setImmediate(turn)
    else then()
  }
  turn()
}
