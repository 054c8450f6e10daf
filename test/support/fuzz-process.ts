import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'

const PROGRAM = join(import.meta.dirname, '../../dist/test/verification/fuzz.js')

/** Runs the built fuzzer as `npm run fuzz` does. */
export async function runFuzzer(args: readonly string[]): Promise<{ code: number | null; stdout: string }> {
  const child = spawn(process.execPath, [PROGRAM, ...args], { stdio: ['ignore', 'pipe', 'inherit'] })
  let stdout = ''
  child.stdout.on('data', (chunk: Buffer) => void (stdout += chunk.toString()))
  const [code] = (await once(child, 'close')) as [number | null]
  return { code, stdout }
}

/** Hashes of the fuzzer's first eight runs, which it prints last. Equal hashes mean equal steps and answers. */
export const hashesOf = (stdout: string): string[] => /; run ([0-9a-f]+)\n$/.exec(stdout)?.[1]?.match(/.{4}/g) ?? []
