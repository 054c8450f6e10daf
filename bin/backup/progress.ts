/** Reports progress in percent on stderr: a terminal gets one changing line, a file a line for each 25 %. */
export function progressOf(
  what: string,
  stream: NodeJS.WriteStream = process.stderr,
): (done: number, total: number) => void {
  let reported = -1
  return (done, total) => {
    const percent = total === 0 ? 100 : Math.floor((done / total) * 100)
    const step = stream.isTTY ? percent : percent - (percent % 25)
    if (step === reported) return
    reported = step
    stream.write(stream.isTTY ? `\r${what} ${step} %${percent === 100 ? '\n' : ''}` : `${what} ${step} %\n`)
  }
}
