/** Ends a process. The first SIGINT or SIGTERM calls `stop`; the second signal ends the process at once. */

const STOP_WITHIN_MS = 10_000
const CHECK_EVERY_MS = 50

/**
 * Calls `stop` on SIGINT or SIGTERM. The process ends within `withinMs`, even if a disk, device or name server blocks.
 */
export function stopOnSignals(stop: () => Promise<void>, withinMs = STOP_WITHIN_MS): void {
  let stopping = false
  const end = () => {
    if (stopping) endAtOnce()
    stopping = true
    setTimeout(endAtOnce, withinMs)
    stop().then(
      () => exitWhenIdle(0),
      (error: unknown) => {
        process.stderr.write(`${String(error)}\n`)
        exitWhenIdle(1)
      },
    )
  }
  process.on('SIGINT', end)
  process.on('SIGTERM', end)
}

/**
 * Waits for file and DNS requests. With open requests, `process.exit` would join the threads of libuv and could hang
 * without limit.
 */
function exitWhenIdle(code: number): void {
  const isBusy = process.getActiveResourcesInfo().some((name) => /^(FSReq|GetAddrInfoReq|GetNameInfoReq)/.test(name))
  if (!isBusy) process.exit(code)
  setTimeout(() => exitWhenIdle(code), CHECK_EVERY_MS)
}

function endAtOnce(): void {
  process.kill(process.pid, 'SIGKILL')
}
