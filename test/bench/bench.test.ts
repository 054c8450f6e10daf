import { spawnSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { Result } from '../../bench/figure.ts'
import { benchProduct } from '../../bench/catalogue/products.ts'
import { isEan } from '../../cloud/catalogue/ean.ts'
import { hasValidCheckDigit } from '../../policy/gs1/gtin.ts'
import { ensureBuilt, ROOT } from '../support/built.ts'

const FIGURES = [
  'verify-token',
  'verify-and-redeem',
  'verify-protected-item',
  'product-page',
  'product-by-ean',
  'product-insert',
  'memory',
  'catalogue-size',
  'product-import',
  'checkout-journey',
  'webhook-fan-out',
  'analytics-read',
  'sales-export',
  'gate',
  'tag-reads',
  'grant-to-relay',
  'recovery',
  'drain',
  'store-day',
]

const folder = mkdtempSync(join(tmpdir(), 'untag-bench-'))
const bench = (...args: string[]) =>
  spawnSync(process.execPath, ['dist/bench/run.js', ...args], { cwd: ROOT, encoding: 'utf8' })

beforeAll(ensureBuilt)
afterAll(() => rmSync(folder, { recursive: true, force: true }))

describe('npm run bench', () => {
  it('lists its figures', () => {
    const { status, stdout } = bench('--help')
    expect(status).toBe(0)
    expect(stdout).toContain(FIGURES.join(', '))
  })

  it('refuses a figure that it does not have', () => {
    const { status, stderr } = bench('no-such-figure')
    expect(status).toBe(1)
    expect(stderr).toContain('there is no figure no-such-figure')
  })

  it('measures a product by its barcode beside a bare route, and says what is missing', () => {
    const json = join(folder, 'result.json')
    const { status, stdout, stderr } = bench('--quick', '--folder', folder, '--json', json, 'product-by-ean')
    expect(stderr).not.toContain('Error')
    expect(status).toBe(0)
    expect(stdout).toContain('Vendure is not measured')
    const { figures } = JSON.parse(readFileSync(json, 'utf8')) as { figures: Record<string, Result> }
    expect(Object.keys(figures)).toEqual(['product-by-ean'])
    const { rows, targets } = figures['product-by-ean'] as Result
    expect(rows.map((row) => row.name)).toEqual(['bare Hono route', 'fetchProduct'])
    const [bare, ours] = rows.map((row) => row.also['bytes'] ?? Number.NaN)
    // The same product; what differs is the header.
    expect(Math.abs((ours ?? Number.NaN) - (bare ?? Number.NaN))).toBeLessThan(150)
    for (const row of rows) expect(row.microseconds).toBeGreaterThan(0)
    expect(targets.map((target) => target.limit)).toEqual([0.4])
  }, 120_000)

  it('measures tag reads from the wire beside the codec and the memory alone', () => {
    const json = join(folder, 'tags.json')
    const { status, stderr } = bench('--quick', '--folder', folder, '--json', json, 'tag-reads')
    expect(stderr).not.toContain('Error')
    expect(status).toBe(0)
    const { figures } = JSON.parse(readFileSync(json, 'utf8')) as { figures: Record<string, Result> }
    expect(figures['tag-reads']?.rows).toHaveLength(6)
    expect(figures['tag-reads']?.targets.map(({ limit }) => limit)).toEqual([1])
  }, 120_000)

  it('measures the recovery of devices in tries of the supervisor', () => {
    const json = join(folder, 'recovery.json')
    const { status, stdout } = bench('--quick', '--folder', folder, '--json', json, 'recovery')
    expect(status).toBe(0)
    const { figures } = JSON.parse(readFileSync(json, 'utf8')) as { figures: Record<string, Result> }
    expect(figures['recovery']?.rows).toHaveLength(9)
    // On virtual time: what is missed here is missed everywhere.
    expect(stdout).not.toContain('MISSED')
  }, 120_000)

  it('makes products that differ and that the catalogue takes', () => {
    const products = Array.from({ length: 5_000 }, (_, i) => benchProduct(i * 199))
    expect(new Set(products.map((product) => product.ean)).size).toBe(products.length)
    for (const { ean, name, price, description } of products) {
      expect(isEan(ean) && hasValidCheckDigit(ean)).toBe(true)
      expect(price).toBe(Math.round(price * 100) / 100)
      expect(Math.max(name.length - 120, description.length - 300)).toBeLessThan(0)
    }
  })
})
