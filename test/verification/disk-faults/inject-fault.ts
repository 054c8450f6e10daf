import type { UntagProcess } from './untag-process.ts'
import { attachFault, wasInjected, type TraceOptions } from './strace.ts'
import type { FaultPoint } from './fault-point.ts'

/** Fault in the system calls of the cloud or the agent. */
export interface InjectedFault {
  /**
   * Ends the fault; returns true if a call failed. If the process was started with the fault, also stops the process.
   */
  disarm(): Promise<boolean>
}

/**
 * Injects the fault into a running process, or starts a process with it. If a process is started with the fault, the
 * start may fail.
 */
export async function injectFault(
  point: FaultPoint,
  running: () => UntagProcess,
  start: (traced: TraceOptions) => Promise<void>,
): Promise<InjectedFault> {
  if (point.mode === 'working') {
    const { pid } = running().child
    const attached = await attachFault(pid ?? 0, point.log, point.injections)
    return {
      async disarm() {
        await attached.detach()
        return wasInjected(point.log)
      },
    }
  }
  await running().stop()
  const isStarted = await start({
    log: point.log,
    calls: point.injections.map((i) => i.calls).join(','),
    injections: point.injections,
  }).then(
    () => true,
    () => false,
  )
  return {
    async disarm() {
      if (isStarted) await running().stop()
      return wasInjected(point.log)
    },
  }
}
