import { realPlatform } from '../../host/platform.ts'
import { FigureUnavailable } from './figure.ts'
import type { FigureReply, FigureRequest } from './figure-process.ts'
import { loadFigure } from './figures.ts'

const { name, mode, folder, vendure } = JSON.parse(process.argv[2] ?? '{}') as FigureRequest

function reply(message: FigureReply): void {
  process.send?.(message, () => process.exit(0))
}

function fail(error: unknown): void {
  if (error instanceof FigureUnavailable) return reply({ unavailable: error.message })
  reply({ error: error instanceof Error ? error : new Error(String(error)) })
}

process.on('uncaughtException', fail)
// After `disconnect` this process exits, because the bench was interrupted. The programs of the figure exit in the same
// way.
process.on('disconnect', () => process.exit(1))

try {
  const figure = await loadFigure(name)
  const note = (text: string) => void process.stderr.write(`… ${text}\n`)
  reply({ result: await figure.run({ mode, folder, vendure, random: realPlatform().random, note }) })
} catch (error) {
  fail(error)
}
