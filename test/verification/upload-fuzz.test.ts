import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import sharp from 'sharp'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { workbookOf, zipOf, type Parts } from '../bench/catalogue/hostile-files.ts'
import { realPlatform } from '../../host/platform.ts'
import { uploadProcesses, type UploadProcesses } from '../../host/upload-process.ts'
import { chanceOf, type Chance } from './simulation/virtual/chance.ts'
import { ensureBuilt, ROOT } from '../support/built.ts'
import { formBody } from '../support/form-body.ts'
import { IS_FULL_SIZE } from '../support/full-size.ts'
import { openShop, type Shop } from '../support/shop.ts'

/** Mutated uploads of each kind. To repeat one, set the seed and the number of the failure. */
const UPLOADS = IS_FULL_SIZE ? 100_000 : 400
const SEED = 42
/** Far more than a mutated upload of some kilobytes needs. */
const WITHIN_MS = 20_000
/** Heap of 320 MB, native memory of a decoded picture, and the program itself. */
const MEMORY_LIMIT_KB = 700 * 1024

const NUMBERS = [0, 1, 7, 0x7f, 0xff, 0x7fff, 0xffff, 0x7fffffff, 0xffffffff]
const WORDS = ['<', '</', '/>', '"', '\'', '&', '&lt;', '<!--', '<![CDATA[', '<!DOCTYPE x>', '\n', '\r', ',', ';', '\t', '\0', '=1+1', '--', 'PK', 'é', '\ufeff', '9'.repeat(400), '1e999', '-0', 'A1048577', 'XFE1'] // prettier-ignore

function mutateBytes(chance: Chance, bytes: Buffer): Buffer {
  let out = Buffer.from(bytes)
  for (let left = chance.between(1, 6); left > 0 && out.length > 8; left--) {
    const at = chance.between(0, out.length - 5)
    const end = Math.min(out.length, at + chance.between(1, 200))
    const kind = chance.between(0, 5)
    if (kind === 0) out[at] = chance.between(0, 255)
    else if (kind === 1) out.writeUInt16LE(chance.one(NUMBERS) & 0xffff, at)
    else if (kind === 2) out.writeUInt32LE(chance.one(NUMBERS), at)
    else if (kind === 3) out = Buffer.concat([out.subarray(0, at), out.subarray(end)])
    else if (kind === 4) out = Buffer.concat([out.subarray(0, end), out.subarray(at)])
    else out = Buffer.concat([out.subarray(0, at), Buffer.from(chance.one(WORDS)), out.subarray(at)])
  }
  return out
}

const mutateText = (chance: Chance, text: string) => mutateBytes(chance, Buffer.from(text))

const SOURCE: Parts = workbookOf(
  { sharedStrings: 'sharedStrings.xml', styles: 'styles.xml' },
  {
    'xl/sharedStrings.xml':
      '<sst><si><t>ean</t></si><si><r><rPr><b/></rPr><t xml:space="preserve">na</t></r></si></sst>',
    'xl/styles.xml':
      '<styleSheet><numFmts/><cellXfs count="2"><xf numFmtId="0"/><xf numFmtId="14"/></cellXfs></styleSheet>',
  },
)

/** Mutates the archive, or the XML inside it. */
function workbook(chance: Chance): Buffer {
  if (chance.happens(0.4)) return mutateBytes(chance, zipOf(SOURCE))
  const name = chance.one(Object.keys(SOURCE))
  return zipOf({ ...SOURCE, [name]: mutateText(chance, String(SOURCE[name])) })
}

const CSV = 'ean;name;price;vat\r\n4012345678901;"Milch; ""frisch""";1,99;7\r\n96385074;Salz;2,00;19\r\n'

describe('mutated uploads', () => {
  let shop: Shop
  let uploads: UploadProcesses
  let pictures: Buffer[]
  beforeAll(async () => {
    ensureBuilt()
    const log = { info: () => undefined, warn: () => undefined, error: () => undefined }
    uploads = uploadProcesses({ platform: realPlatform(), log, script: join(ROOT, 'dist/host/upload-child.js') })
    shop = await openShop('sqlite', { uploads })
    const picture = sharp({ create: { width: 30, height: 20, channels: 3, background: { r: 200, g: 30, b: 60 } } })
    pictures = await Promise.all([picture.jpeg().toBuffer(), picture.png().toBuffer(), picture.webp().toBuffer()])
  })
  afterAll(async () => {
    await shop.stop()
    uploads.stop()
  })

  const post = async (operation: string, body: Buffer, type: string) => {
    const headers = { authorization: `Bearer ${shop.key}`, 'content-type': type }
    return shop.cloud.cloud.app.request(`/api/v1/${operation}`, {
      method: 'POST',
      headers,
      body: body as Buffer<ArrayBuffer>,
    })
  }
  async function send(operation: string, fields: Record<string, string>, file: [field: string, bytes: Buffer]) {
    const form = new FormData()
    for (const [name, value] of Object.entries(fields)) form.set(name, value)
    form.set(file[0], new File([file[1] as Buffer<ArrayBuffer>], 'file'))
    const { body, headers } = await formBody(form)
    return { operation, body: Buffer.from(body) as Buffer, type: headers['content-type'] }
  }
  const dryRun = (file: Buffer) => send('importProducts', { storeId: shop.storeId, dryRun: 'true' }, ['file', file])
  const picture = (file: Buffer) =>
    send('uploadImageToProduct', { productId: shop.products[0].productId }, ['snapshot', file])
  const KINDS: Record<string, (chance: Chance) => ReturnType<typeof send>> = {
    workbook: (chance) => dryRun(workbook(chance)),
    csv: (chance) => dryRun(mutateText(chance, CSV)),
    picture: (chance) => picture(mutateBytes(chance, chance.one(pictures))),
    async form(chance) {
      const sent = await dryRun(Buffer.from(CSV))
      const type = chance.happens(0.5) ? mutateText(chance, sent.type).toString('latin1') : sent.type
      // A header value has no line ends and no NUL.
      return { ...sent, body: mutateBytes(chance, sent.body), type: type.replaceAll(/[^\t\x20-\x7e]/g, '~').trim() }
    },
  }

  /** Highest memory of the child processes so far, KB (Linux). */
  function memoryOfReaders(): number[] {
    try {
      const children = readFileSync(`/proc/self/task/${process.pid}/children`, 'utf8').trim().split(' ')
      return children.flatMap((pid) => {
        const status = pid === '' ? '' : readFileSync(`/proc/${pid}/status`, 'utf8')
        const isReader = pid !== '' && readFileSync(`/proc/${pid}/cmdline`, 'utf8').includes('upload-child')
        return isReader ? [Number(/VmHWM:\s+(\d+)/.exec(status)?.[1] ?? 0)] : []
      })
    } catch {
      return []
    }
  }

  it.each(Object.keys(KINDS))(
    'of the kind %s get 200 or 4xx in time',
    { timeout: IS_FULL_SIZE ? 3_600_000 : 120_000 },
    async (kind) => {
      const statuses = new Map<number, number>()
      for (let number = 0; number < UPLOADS / 4; number++) {
        const chance = chanceOf(SEED).fork(`${kind} ${number}`)
        const { operation, body, type } = await KINDS[kind]!(chance)
        const began = performance.now()
        const answer = await post(operation, body, type)
        const text = await answer.text()
        const about = `${kind} ${number} of seed ${SEED}: ${answer.status} ${text.slice(0, 300)}`
        expect(answer.status === 200 || (answer.status >= 400 && answer.status < 500), about).toBe(true)
        expect(performance.now() - began, about).toBeLessThan(WITHIN_MS)
        statuses.set(answer.status, (statuses.get(answer.status) ?? 0) + 1)
      }
      // Both outcomes occur, so the mutants are neither harmless nor all refused at the first check.
      expect(statuses.size, JSON.stringify([...statuses])).toBeGreaterThan(1)
      expect(shop.cloud.errors).toEqual([])
      for (const kilobytes of memoryOfReaders()) expect(kilobytes).toBeLessThan(MEMORY_LIMIT_KB)
    },
  )
})
