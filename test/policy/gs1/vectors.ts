/**
 * Encodings from other sources, retyped. Bytes are facts, so no file is copied. epc-tds examples.js (MIT), bytefeld.epc
 * Sgtin96Tests and EpcTagsTests, sllurp tests/test_epc.py, awelxtr/epcGS1coder Sgtin96Test and Sgtin198Test, Nike
 * epc-java EpcTest (Apache-2.0), nedap/epcpy test_sgtin, GS1 TDS 2.3 §E.3, and Odoo's test_epc_encoder, whose values
 * come from GS1's web encoder. For sources without a GTIN (epcGS1coder, Nike) it was computed by hand.
 */
export interface Vector {
  readonly source: string
  readonly hex: string
  readonly uri: string
  readonly gtin14: string
  readonly serial: string
}

export const VECTORS: readonly Vector[] = [
  {
    source: 'epc-tds examples.js; GS1 TDS',
    hex: '3074257BF7194E4000001A85',
    uri: 'urn:epc:tag:sgtin-96:3.0614141.812345.6789',
    gtin14: '80614141123458',
    serial: '6789',
  },
  {
    source: 'sllurp tests/test_epc.py, partition 0',
    hex: '30204ED9496334000000006E',
    uri: 'urn:epc:tag:sgtin-96:1.084663228621.0.110',
    gtin14: '00846632286210',
    serial: '110',
  },
  {
    source: 'bytefeld.epc Sgtin96Tests, partition 6',
    hex: '3039542C82FB024000000001',
    uri: 'urn:epc:tag:sgtin-96:1.348338.0781321.1',
    gtin14: '03483387813215',
    serial: '1',
  },
  {
    source: 'bytefeld.epc Sgtin96Tests, partition 5',
    hex: '3034C8470C0796C000000001',
    uri: 'urn:epc:tag:sgtin-96:1.3281347.007771.1',
    gtin14: '03281347077710',
    serial: '1',
  },
  {
    source: 'bytefeld.epc Sgtin96Tests, partition 4',
    hex: '3030F380DE001EC000000001',
    uri: 'urn:epc:tag:sgtin-96:1.31916476.00123.1',
    gtin14: '03191647601235',
    serial: '1',
  },
  {
    source: 'bytefeld.epc Sgtin96Tests, partition 3',
    hex: '302D28B329B0F6C000000001',
    uri: 'urn:epc:tag:sgtin-96:1.311112347.0987.1',
    gtin14: '03111123479875',
    serial: '1',
  },
  {
    source: 'bytefeld.epc Sgtin96Tests, partition 2',
    hex: '3028B3A7F7390E0000000001',
    uri: 'urn:epc:tag:sgtin-96:1.3014129465.056.1',
    gtin14: '03014129465562',
    serial: '1',
  },
  {
    source: 'bytefeld.epc Sgtin96Tests, partition 1',
    hex: '3024DFD31D1DE0C000000001',
    uri: 'urn:epc:tag:sgtin-96:1.30041237743.03.1',
    gtin14: '03004123774333',
    serial: '1',
  },
  {
    source: 'bytefeld.epc Sgtin96Tests, partition 0',
    hex: '302117688465380000000001',
    uri: 'urn:epc:tag:sgtin-96:1.300012345678.0.1',
    gtin14: '03000123456781',
    serial: '1',
  },
  {
    source: 'epcGS1coder Sgtin96Test',
    hex: '3034007D00011C400000000B',
    uri: 'urn:epc:tag:sgtin-96:1.0008000.001137.11',
    gtin14: '00008000011378',
    serial: '11',
  },
  {
    source: 'Nike epc-java EpcTest, partition 6',
    hex: '3018E20A00AFFD1CBE991A14',
    uri: 'urn:epc:tag:sgtin-96:0.231464.0180212.123456789012',
    gtin14: '02314641802120',
    serial: '123456789012',
  },
  {
    source: 'GS1 TDS 2.3 §E.3',
    hex: '3066C4409047E140075BCD15',
    uri: 'urn:epc:tag:sgtin-96:3.95060001343.05.123456789',
    gtin14: '09506000134352',
    serial: '123456789',
  },
  {
    source: 'Odoo, from GS1 encoder: largest serial',
    hex: '3036451FD40C0E7FFFFFFFFF',
    uri: 'urn:epc:tag:sgtin-96:1.9521141.012345.274877906943',
    gtin14: '09521141123454',
    serial: '274877906943',
  },
  {
    source: 'nedap/epcpy test_sgtin: an EAN-8',
    hex: '36300001DB011169E5E5A70EC000000000000000000000000000',
    uri: 'urn:epc:tag:sgtin-198:1.00000950.01093.Serial',
    gtin14: '00000095010939',
    serial: 'Serial',
  },
  {
    source: 'GS1 TDS 2.3 §E.3',
    hex: '3666C4409047E159B2C2BF100000000000000000000000000000',
    uri: 'urn:epc:tag:sgtin-198:3.95060001343.05.32a%2Fb',
    gtin14: '09506000134352',
    serial: '32a/b',
  },
  {
    source: 'epcGS1coder Sgtin198Test',
    hex: '3634007D00011C7A68D3CE4F383532F3E8000000000000000000',
    uri: 'urn:epc:tag:sgtin-198:1.0008000.001137.thisIsATest',
    gtin14: '00008000011378',
    serial: 'thisIsATest',
  },
  {
    source: 'Odoo, from GS1 encoder: escapes',
    hex: '3634000000003A90AF4A995AD540000000000000000000000000',
    uri: 'urn:epc:tag:sgtin-198:1.0000000.000234.!%2F%25%26+-*',
    gtin14: '00000000002349',
    serial: '!/%&+-*',
  },
  {
    source: 'bytefeld.epc EpcTagsTests: 20 characters',
    hex: '3639542C82FB0258B266D1AB66EE1CB062C99B46AD9BB872C000',
    uri: 'urn:epc:tag:sgtin-198:1.348338.0781321.12345678901234567890',
    gtin14: '03483387813215',
    serial: '12345678901234567890',
  },
]
