// @module-tag extended
import { execFile } from 'node:child_process'
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { FIGURE_NAMES } from './figures.ts'
import { scaleRows } from './scale/scale-rows.ts'
import { whyNoPostgres } from '../verification/kills/postgres-server.ts'
import type { Report } from './run-figures.ts'
import { benchProduct } from './catalogue/products.ts'
import { eansOf } from '../../cloud/shop/catalogue/ean.ts'
import { hasValidCheckDigit } from '../../policy/gs1/gtin.ts'
import { ensureBuilt, ROOT } from '../support/built.ts'
import { NO_WHOLE_CHROMIUM } from '../support/chromium.ts'
import { itInFullSize } from '../support/full-size.ts'

const folder = mkdtempSync(join(tmpdir(), 'untag-bench-'))
/** Uses execFile instead of spawnSync, because a worker that blocks for a minute loses its connection to vitest. */
const bench = (...args: string[]) =>
  new Promise<{ status: number; stdout: string; stderr: string }>((resolve) => {
    execFile(process.execPath, ['dist/test/bench/run.js', ...args], { cwd: ROOT }, (error, stdout, stderr) =>
      resolve({ status: error === null ? 0 : Number(error.code), stdout, stderr }),
    )
  })

beforeAll(ensureBuilt)
afterAll(() => rmSync(folder, { recursive: true, force: true }))

describe('npm run bench', () => {
  it('lists its figures', async () => {
    const { status, stdout } = await bench('--help')
    expect(status).toBe(0)
    expect(stdout).toContain(FIGURE_NAMES.join(', '))
  })

  it.each([
    ['a figure that does not exist', ['no-such-figure'], 'there is no figure no-such-figure'],
    ['--quick together with --smoke', ['--quick', '--smoke'], '--quick and --smoke exclude each other'],
    ['a JSON file that cannot be written', ['--json', join(folder, 'missing', 'x.json')], 'ENOENT'],
  ])('rejects %s before the first measurement', async (_, args, message) => {
    const { status, stderr, stdout } = await bench('--folder', folder, ...args)
    expect(status).toBe(1)
    expect(stderr).toContain(message)
    expect(stdout).not.toContain('µs/op')
  })

  itInFullSize(
    'runs every figure in its smallest size and stores all results',
    async () => {
      const json = join(folder, 'smoke.json')
      const { status, stdout, stderr } = await bench('--smoke', '--folder', folder, '--json', json)
      const { figures, failures, skipped, mode } = JSON.parse(readFileSync(json, 'utf8')) as Report
      expect(failures, stderr).toEqual({})
      expect(status).toBe(0)
      expect(mode).toBe('smoke')
      const missing = whyNoPostgres()
      expect(skipped).toEqual({
        ...(NO_WHOLE_CHROMIUM !== undefined && { 'alarm-on-page': NO_WHOLE_CHROMIUM }),
        ...(missing !== undefined && { postgres: missing }),
      })
      expect(Object.keys({ ...figures, ...skipped })).toEqual(FIGURE_NAMES)
      // Each aim of the table in docs/performance.md finds the rows of its figure.
      expect(scaleRows(figures)).toHaveLength(missing === undefined ? 26 : 5)
      for (const name of Object.keys(figures)) expect(stdout).toContain(`ran     ${name}\n`)
      // The bare route returns the same product. Only the headers differ.
      const { rows, notes } = figures['product-by-ean']!
      expect(rows.map((row) => row.name)).toEqual(['bare Hono route', 'fetchProduct'])
      expect(Math.abs(rows[0]!.also['bytes']! - rows[1]!.also['bytes']!)).toBeLessThan(150)
      expect(notes.join()).toContain('Vendure is not measured')
      expect(figures['tag-reads']!.rows).toHaveLength(6)
      // Each figure's folder is removed.
      expect(readdirSync(folder)).toEqual(['smoke.json'])
    },
    600_000,
  )

  it('measures the recovery of devices in attempts of the supervisor', async () => {
    const json = join(folder, 'recovery.json')
    const { status, stdout } = await bench('--quick', '--folder', folder, '--json', json, 'recovery')
    expect(status).toBe(0)
    const { figures } = JSON.parse(readFileSync(json, 'utf8')) as Report
    expect(Object.keys(figures)).toEqual(['recovery'])
    expect(figures['recovery']!.rows).toHaveLength(9)
    // On virtual time the result is the same on every machine.
    expect(stdout).not.toContain('MISSED')
  })

  it('creates distinct products that the catalogue accepts', () => {
    const products = Array.from({ length: 5_000 }, (_, i) => benchProduct(i * 199))
    expect(new Set(products.map((product) => product.ean)).size).toBe(products.length)
    for (const { ean, name, price, description } of products) {
      expect([eansOf(ean)[0], hasValidCheckDigit(ean)]).toEqual([ean, true])
      expect(price).toBe(Math.round(price * 100) / 100)
      expect(Math.max(name.length - 120, description.length - 300)).toBeLessThan(0)
    }
  })
})
