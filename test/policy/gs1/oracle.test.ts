import epcTds from 'epc-tds'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { decodeSgtin, encodeSgtin } from '../../../policy/gs1/sgtin.ts'
import { anySgtin } from './arbitraries.ts'

// The package is CommonJS: its types promise a `default` that Node already unwraps.
const tds = epcTds as unknown as typeof epcTds.default

/**
 * epc-tds (MIT, by others) writes and reads the same tags. It is lenient where we are strict, so it is
 * asked only about good ones; and it writes SGTIN-198 as 25 bytes where a tag has 26 (13 words).
 */
test.each([
  ['sgtin-96', () => new tds.Sgtin96(), ''],
  ['sgtin-198', () => new tds.Sgtin198(), '00'],
] as const)('epc-tds agrees on random %s', (scheme, create, lastByte) => {
  fc.assert(
    fc.property(anySgtin(scheme), (sgtin) => {
      const theirs = create().setFilter(sgtin.filter)
      theirs.setPartition(12 - sgtin.companyPrefix.length)
      theirs.setCompanyPrefix(Number(sgtin.companyPrefix))
      theirs.setItemReference(Number(sgtin.itemReference))
      theirs.setSerial((scheme === 'sgtin-96' ? Number(sgtin.serial) : sgtin.serial) as never)
      const hex = theirs.toHexString() + lastByte

      expect(encodeSgtin(sgtin)).toEqual({ ok: true, hex })
      expect(decodeSgtin(hex)).toEqual({ ok: true, sgtin: { ...sgtin, gtin14: theirs.getGtin() } })
    }),
    { numRuns: 4000 },
  )
})
