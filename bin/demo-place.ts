import { existsSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'

/** File of this user that names the folder of the demo that started last. */
function placeFile(folder: string): string {
  return join(folder, `untag-demo-${process.getuid?.() ?? 'user'}`)
}

/** Notes where the demo runs, so that `untag doctor` finds it. Returns a function that removes the note. */
export function noteDemo(agentData: string, folder: string = tmpdir()): () => Promise<void> {
  const file = placeFile(folder)
  const text = `${process.pid} ${resolve(agentData)}\n`
  try {
    // A file of another user, or a link, is not followed.
    rmSync(file, { force: true })
    writeFileSync(file, text, { mode: 0o600, flag: 'wx' })
  } catch {
    return async () => undefined
  }
  return async () => {
    try {
      if (readFileSync(file, 'utf8') === text) rmSync(file)
    } catch {
      return
    }
  }
}

/** The folder of the agent of a running demo of this user. */
export function runningDemo(folder: string = tmpdir()): string | undefined {
  const file = placeFile(folder)
  try {
    if (process.getuid && statSync(file).uid !== process.getuid()) return undefined
    const [, pid, data = ''] = /^(\d{1,10}) (.{1,4096})\n$/.exec(readFileSync(file, 'utf8')) ?? []
    process.kill(Number(pid), 0)
    return existsSync(join(data, 'agent.json')) ? data : undefined
  } catch {
    return undefined
  }
}
