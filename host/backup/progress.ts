const BAR_WIDTH = 24

/** Reports that `done` of `total` parts are ready. */
export type Progress = (done: number, total: number) => void

/** Reports progress on stderr: a terminal gets a bar that grows, a file a line for each 25 %. */
export function progressOf(what: string, stream: NodeJS.WriteStream = process.stderr): Progress {
  let reported = -1
  return (done, total) => {
    const percent = total === 0 ? 100 : Math.floor((done / total) * 100)
    const step = stream.isTTY ? percent : percent - (percent % 25)
    if (step === reported) return
    reported = step
    stream.write(stream.isTTY ? `\r${bar(what, step)}${percent === 100 ? '\n' : ''}` : `${what} ${step} %\n`)
  }
}

/** Progress that only a terminal shows, for work whose log should stay short. */
export function terminalProgress(what: string, stream: NodeJS.WriteStream = process.stderr): Progress {
  return stream.isTTY ? progressOf(what, stream) : () => undefined
}

function bar(what: string, percent: number): string {
  const full = Math.floor((percent / 100) * BAR_WIDTH)
  return `${what.padEnd(10)} ${'█'.repeat(full)}${'░'.repeat(BAR_WIDTH - full)} ${String(percent).padStart(3)} %`
}
