import { describe, it } from 'vitest'

/**
 * Tests of the second tier have the tag `extended`: a file has the line `// @module-tag extended`, a suite or a test has
 * these options. `npm test` leaves them out; `npm run test:all` runs them.
 */
export const EXTENDED = { tags: ['extended'] }

/** A suite that needs a tool. `missing`: what to install; the suite is then skipped, and its title says so. */
export function suiteWith(missing: string | null | undefined, name: string, suite: () => void): void {
  describe.skipIf(missing)(missing ? `${name} (skipped: ${missing})` : name, EXTENDED, suite)
}

/** A random test: `few` runs in the first tier, and `many` in the second. */
export function randomTest(
  name: string,
  { few, many }: { few: number; many: number },
  test: (numRuns: number) => Promise<void>,
): void {
  it(name, () => test(few))
  it(`${name}, in many runs`, EXTENDED, () => test(many))
}
