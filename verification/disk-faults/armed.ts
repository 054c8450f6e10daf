import type { UntagProcess } from './part.ts'
import { attachFault, wasInjected, type TraceOptions } from './strace.ts'
import type { FaultPoint } from './aim.ts'

/** Fault in the system calls of the cloud or the agent. */
export interface InjectedFault {
  /** Ends the fault; returns true if a call failed. A process that was started with the fault is stopped. */
  disarm(): Promise<boolean>
}

/** Injects the fault into a running process, or starts a process with it. Such a start may fail. */
export async function injectFault(
  aim: FaultPoint,
  running: () => UntagProcess,
  start: (traced: TraceOptions) => Promise<void>,
): Promise<InjectedFault> {
  if (aim.mode === 'working') {
    const { pid } = running().child
    const attached = await attachFault(pid ?? 0, aim.log, aim.injections)
    return {
      async disarm() {
        await attached.detach()
        return wasInjected(aim.log)
      },
    }
  }
  await running().stop()
  const isStarted = await start({
    log: aim.log,
    calls: aim.injections.map((i) => i.calls).join(','),
    injections: aim.injections,
  }).then(
    () => true,
    () => false,
  )
  return {
    async disarm() {
      if (isStarted) await running().stop()
      return wasInjected(aim.log)
    },
  }
}
