import type { Socket } from 'node:net'
import { pause } from '../../../policy/platform.ts'
import { realPlatform } from '../../../host/platform.ts'
import { forwardTo } from '../kills/tcp-wire.ts'

/** Connection between a cloud and its PostgreSQL server. It can lose the answer to a COMMIT. */
export interface LossyWire {
  readonly port: number
  /**
   * Waits until the server has executed the COMMIT of a request, and cuts all connections before the answer of the
   * server arrives.
   */
  loseCommit(): Promise<void>
  close(): void
}

/** Maximum wait for a COMMIT and its answer, ms. */
const WAIT_MS = 5_000

/** Starts a proxy for the server at this port. */
export async function startLossyWire(serverPort: number): Promise<LossyWire> {
  let onCommit = () => {}
  /** Jobs that follow a request, such as the sealing of the audit log, run at the level read committed. */
  const isJob = new WeakMap<Socket, boolean>()
  const forward = await forwardTo(
    () => serverPort,
    (data, connection) => {
      if (data.includes('isolation level')) isJob.set(connection, data.includes('read committed'))
      if (data.includes('commit\0') && isJob.get(connection) === false) onCommit()
    },
  )
  return {
    port: forward.port,
    async loseCommit() {
      const executed = new Promise<void>((resolve) => {
        onCommit = () => forward.mute((data) => void (data.includes('COMMIT\0') && resolve()))
      })
      await Promise.race([executed, pause(realPlatform().timers, WAIT_MS)])
      onCommit = () => {}
      forward.cut()
      forward.restore()
    },
    close: forward.close,
  }
}
