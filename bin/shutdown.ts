/** Ends a process in order: the first SIGINT or SIGTERM stops gently, the second at once. */

const STOP_WITHIN_MS = 10_000
const CHECK_EVERY_MS = 50

/** Stops on SIGINT and SIGTERM; the process ends within 10 s, whatever waits for a disk, a device or a name server. */
export function stopOnSignals(stop: () => Promise<void>): void {
  let stopping = false
  const end = () => {
    if (stopping) endAtOnce()
    stopping = true
    setTimeout(endAtOnce, STOP_WITHIN_MS)
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

/** `process.exit` joins the threads of libuv, without limit: a look-up or an open that hangs would keep the process alive. */
function exitWhenIdle(code: number): void {
  const isBusy = process.getActiveResourcesInfo().some((name) => /^(FSReq|GetAddrInfoReq|GetNameInfoReq)/.test(name))
  if (!isBusy) process.exit(code)
  setTimeout(() => exitWhenIdle(code), CHECK_EVERY_MS)
}

function endAtOnce(): void {
  process.kill(process.pid, 'SIGKILL')
}
