import { createHash } from 'node:crypto'
import { join } from 'node:path'
import { rmSync } from 'node:fs'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { openItemFile, type ItemFile } from '../../../edge-agent/items/item-file.ts'
import { Pictures } from '../../../edge-agent/items/pictures.ts'
import { packItem } from '../../../edge-agent/items/item-table.ts'
import { PICTURE_BYTES_LIMIT } from '../../../policy/documents/item-documents.ts'
import { temporaryFolder } from '../../support/databases.ts'

const webp = (text: string, length = 100) => {
  const bytes = Buffer.alloc(length, text)
  bytes.write('RIFF', 0, 'latin1')
  bytes.write('WEBPVP8 ', 8, 'latin1')
  return bytes
}
const hashOf = (bytes: Buffer) => createHash('sha256').update(bytes).digest('base64url')
const textOf = (bytes: Buffer) => bytes.toString('base64url')

describe('the pictures of products', () => {
  let folder: string
  let file: ItemFile
  let pictures: Pictures
  let warnings: Record<string, unknown>[]
  const progress = { epoch: 0, ver: 1, base: 0, confirmedMs: 0 }
  const log = {
    info: () => undefined,
    error: () => undefined,
    warn: (fields: object) => void warnings.push({ ...fields }),
  }
  const open = () => {
    file = openItemFile(join(folder, 'items.db'), (error) => expect(error).toBeUndefined())
    pictures = new Pictures({ file: file.pictures, log })
  }
  const addItem = (name: string, picture: Buffer | undefined) =>
    file.write(
      [
        {
          name,
          ...packItem({ status: 'sellable', paying: false }, 0),
          product: 'Sneaker',
          picture: picture && hashOf(picture),
        },
      ],
      progress,
      [],
    )
  beforeEach(() => {
    folder = temporaryFolder('pictures')
    warnings = []
    open()
  })
  afterEach(() => {
    file.close()
    rmSync(folder, { recursive: true, force: true })
  })

  it('fetches the picture of an item once, and still has it after a restart without the cloud', () => {
    const picture = webp('a')
    addItem('EABCD', picture)
    addItem('EABCE', picture)
    expect(file.pictureOf('EABCD')).toBeUndefined()
    const requested = pictures.request()
    expect(requested).toEqual([hashOf(picture)])
    expect(pictures.receive(requested, [textOf(picture)])).toBe(true)
    expect(pictures.request()).toEqual([])
    file.close()
    open()
    expect([file.pictureOf('EABCD'), file.pictureOf('EABCE')]).toEqual([hashOf(picture), hashOf(picture)])
    expect(Buffer.from(pictures.read(hashOf(picture)) ?? [])).toEqual(picture)
  })

  it('stores no picture with another hash, too many bytes or another type, and logs why', () => {
    const svg = Buffer.from('<svg xmlns="http://www.w3.org/2000/svg"><script>alert(1)</script></svg>')
    const [large, own, other] = [webp('l', PICTURE_BYTES_LIMIT + 1), webp('o'), webp('x')]
    for (const [n, picture] of [svg, large, own].entries()) addItem(`E${n}`, picture)
    const requested = pictures.request()
    expect(requested).toHaveLength(3)
    expect(pictures.receive(requested, [svg, large, other].map(textOf))).toBe(false)
    for (const picture of [svg, large, own, other]) expect(pictures.read(hashOf(picture))).toBeUndefined()
    expect(warnings.map(({ why }) => why)).toEqual([
      'it is no WebP picture',
      'it has more than 4096 bytes',
      'its hash was not requested',
      undefined,
    ])
    expect(pictures.request(), 'does not request them again').toEqual([])
  })

  it('survives answers that are no list of texts', () => {
    addItem('E1', webp('a'))
    for (const answer of [undefined, null, 'x', [7, null, {}], { length: 1 }])
      expect(new Pictures({ file: file.pictures, log }).receive(pictures.request(), answer)).toBe(false)
  })

  it('deletes a picture when no item names it', () => {
    const [a, b] = [webp('a'), webp('b')]
    addItem('E1', a)
    addItem('E2', b)
    pictures.receive(pictures.request(), [a, b].map(textOf))
    file.write([{ name: 'E1', info: 0, label: 0 }], progress, [])
    addItem('E2', undefined)
    addItem('E3', b)
    pictures.request()
    expect(pictures.read(hashOf(a))).toBeUndefined()
    expect(pictures.read(hashOf(b))).toBeDefined()
    file.clear(progress)
    pictures.request()
    expect(pictures.read(hashOf(b))).toBeUndefined()
  })
})
