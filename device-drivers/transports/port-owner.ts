import { readdir, readFile, readlink, realpath } from 'node:fs/promises'

const MAX_PROCESSES = 4_096
const MAX_FILES = 1_024

async function hasOpen(pid: string, device: string): Promise<boolean> {
  const folder = `/proc/${pid}/fd`
  const files = await readdir(folder).catch(() => [])
  for (const file of files.slice(0, MAX_FILES)) {
    if ((await readlink(`${folder}/${file}`).catch(() => '')) === device) return true
  }
  return false
}

/**
 * Finds another program that uses a port. Returns `name (process id)`. Null on systems without /proc, or if another
 * user runs the program.
 */
export async function portOwner(path: string): Promise<string | null> {
  const device = await realpath(path).catch(() => path)
  const processes = (await readdir('/proc').catch(() => [])).filter(
    (name) => /^\d+$/.test(name) && name !== String(process.pid),
  )
  for (const pid of processes.slice(0, MAX_PROCESSES)) {
    if (!(await hasOpen(pid, device))) continue
    const name = await readFile(`/proc/${pid}/comm`, 'utf8').catch(() => 'a program')
    return `${name.trim()} (process ${pid})`
  }
  return null
}
