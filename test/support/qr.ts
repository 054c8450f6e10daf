import { createRequire } from 'node:module'
import { PNG } from 'pngjs'

const jsqr = createRequire(import.meta.url)('jsqr') as (
  data: Uint8ClampedArray,
  width: number,
  height: number,
) => { data: string } | null

/** Reads the QR code in a PNG with an independent library. */
export function readQr(png: Buffer): string | undefined {
  const { data, width, height } = PNG.sync.read(png)
  return jsqr(new Uint8ClampedArray(data), width, height)?.data
}
