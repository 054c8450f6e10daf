import epcTds from 'epc-tds'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { decodeSgtin, encodeSgtin } from '../../../policy/gs1/sgtin.ts'
import { anySgtin } from './arbitraries.ts'

// The package is CommonJS. Its types declare a `default` that Node.js already unwraps.
const tds = epcTds as unknown as typeof epcTds.default

/**
 * The independent package epc-tds encodes and decodes the same tags. It accepts some invalid tags, so the test compares
 * only valid ones. It writes an SGTIN-198 as 25 bytes; a tag has 26 (13 words).
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
