import { spawn } from 'node:child_process'
import { createInterface } from 'node:readline'
import { tryTool } from '../verification/tools.ts'

/** Two serial ports of the operating system, connected as by a null-modem cable. */
export interface PtyPair {
  readonly near: string
  readonly far: string
  /** The process that holds the other ends of both ports. */
  readonly pid: number
  /** Unplugs `near`: the kernel hangs the port up, as for a USB adapter. */
  unplug(): void
  close(): Promise<void>
}

const BRIDGE = `
import os, pty, select, sys, tty
a, sa = pty.openpty()
b, sb = pty.openpty()
tty.setraw(sa); tty.setraw(sb)
print(os.ttyname(sa), os.ttyname(sb), flush=True)
other = {a: b, b: a}
while True:
    ready, _, _ = select.select(list(other) + [0], [], [])
    for fd in ready:
        if fd == 0:
            line = os.read(0, 100)
            if not line: sys.exit(0)
            if a in other:
                other = {b: None}
                os.close(sa); os.close(a)
        elif fd in other:
            data = os.read(fd, 4096)
            if other[fd] is not None: os.write(other[fd], data)
`

/** True if this machine has Python, whose standard library makes such ports. */
export const hasPty = tryTool('python3', '-c', 'import pty').status === 0

export async function ptyPair(): Promise<PtyPair> {
  const bridge = spawn('python3', ['-I', '-S', '-c', BRIDGE], { stdio: ['pipe', 'pipe', 'inherit'] })
  const ended = new Promise<void>((resolve) => bridge.once('exit', () => resolve()))
  const lines = createInterface({ input: bridge.stdout })
  const [near = '', far = ''] = (await new Promise<string>((resolve) => lines.once('line', resolve))).split(' ')
  return {
    near,
    far,
    pid: bridge.pid ?? 0,
    unplug: () => void bridge.stdin.write('unplug\n'),
    close: () => {
      bridge.stdin.end()
      return ended
    },
  }
}
