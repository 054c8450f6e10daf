import type { UntagProcess } from './part.ts'
import { attachFault, wasInjected, type TraceOptions } from './strace.ts'
import type { FaultPoint } from './aim.ts'

/** A part whose calls fail. */
export interface InjectedFault {
  /** Lets its calls through again, and answers whether one had failed. A part that was started so is stopped. */
  disarm(): Promise<boolean>
}

/** Has calls of a part fail: of the one that runs, or of one that is started for it; a start may fail then. */
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
