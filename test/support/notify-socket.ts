import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { findTool } from '../verification/tools.ts'
import { temporaryFolder } from './databases.ts'

/** Prints each datagram as a line. It closes the file descriptor of `BARRIER=1`, for which `systemd-notify` waits. */
const RECEIVER = `
import socket, sys
receiver = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
receiver.bind(sys.argv[1])
print('listening', flush=True)
while True:
    print(receiver.recv(4096).decode().strip().replace('\\n', ' '), flush=True)
`

/** Why the notify protocol cannot be tested on this machine, or undefined. Node.js has no Unix datagram sockets. */
export const NO_NOTIFY_SOCKET = ['systemd-notify', 'systemd-analyze', 'python3'].some(
  (program) => findTool(program) === undefined,
)
  ? 'install the packages systemd and python3'
  : undefined

/** A socket that receives what services report to systemd. */
export interface NotifySocket {
  /** Settings that systemd passes to a service. */
  env(watchdogMs: number): NodeJS.ProcessEnv
  /** The messages so far. */
  readonly messages: readonly string[]
  /** Resolves when this many more messages that contain `text` were received. */
  next(text: string, count?: number): Promise<void>
  /** Resolves when no message was received for `ms`. */
  silence(ms: number): Promise<void>
  close(): void
}

export async function openNotifySocket(): Promise<NotifySocket> {
  const path = join(temporaryFolder('notify'), 'socket')
  const receiver = spawn('python3', ['-c', RECEIVER, path], { stdio: ['ignore', 'pipe', 'inherit'] })
  const messages: string[] = []
  const lines = createInterface({ input: receiver.stdout })
  await once(lines, 'line')
  lines.on('line', (line) => void (line !== 'BARRIER=1' && messages.push(line)))
  return {
    env: (watchdogMs) => ({ NOTIFY_SOCKET: path, WATCHDOG_USEC: String(watchdogMs * 1_000) }),
    messages,
    async next(text, count = 1) {
      const start = messages.length
      while (messages.slice(start).filter((m) => m.includes(text)).length < count) await once(lines, 'line')
    },
    silence: (ms) =>
      new Promise((resolve) => {
        const end = () => {
          lines.off('line', again)
          resolve()
        }
        let timer = setTimeout(end, ms)
        const again = () => {
          clearTimeout(timer)
          timer = setTimeout(end, ms)
        }
        lines.on('line', again)
      }),
    close: () => void receiver.kill('SIGKILL'),
  }
}
