import { expect, it } from 'vitest'
import { itemUri } from '../../../../cloud/sales/epcis/events-of.ts'
import { parseDigitalLink } from '../../../../policy/gs1/product-code.ts'

it('a serial in an EPCIS URI is escaped like in the tools of GS1, and can be parsed', () => {
  const uri = itemUri({ epc: "urn:epc:id:sgtin:0614141.112345.a!'()*%2F" }) ?? ''
  expect(uri).toBe('https://id.gs1.org/01/10614141123459/21/a%21%27%28%29%2A%2F')
  expect(parseDigitalLink(uri)).toEqual({ gtin14: '10614141123459', serial: "a!'()*/" })
})
