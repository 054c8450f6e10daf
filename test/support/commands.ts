import { vi } from 'vitest'
import { main } from '../../bin/main.ts'
import type { ProcessResult } from '../verification/kills/processes.ts'

let last: Promise<unknown> = Promise.resolve()

/**
 * Runs a command to its end in this process, which takes a twentieth of the time of a new one. For commands that serve,
 * crash or read their environment use `runProcess`. Commands run one after another, because they share stdout.
 */
export function runCommand(args: readonly string[]): Promise<ProcessResult> {
  const result = last.then(() => run(args))
  last = result.catch(() => undefined)
  return result
}

async function run(args: readonly string[]): Promise<ProcessResult> {
  const written = { stdout: '', stderr: '' }
  const streams = (['stdout', 'stderr'] as const).map((name) =>
    vi.spyOn(process[name], 'write').mockImplementation((chunk) => {
      written[name] += typeof chunk === 'string' ? chunk : Buffer.from(chunk).toString()
      return true
    }),
  )
  const { exitCode } = process
  process.exitCode = undefined
  try {
    const code = await main(args)
    return { code: code ?? Number(process.exitCode ?? 0), ...written }
  } finally {
    process.exitCode = exitCode
    for (const stream of streams) stream.mockRestore()
  }
}
