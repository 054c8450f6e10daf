import { canPin, CORES, startProgram, type Program } from '../child.ts'
import type { PreparedCatalogue } from '../cloud-program.ts'
import type { Bench } from '../figure.ts'
import type { Address } from '../http-contender.ts'
import type { BareProduct } from '../peers/bare-products.ts'
import { startVendure } from '../peers/vendure.ts'
import { productBody, searchBody } from './vendure-questions.ts'

/** Number of products. All servers have the same products. */
export const PRODUCTS = 1_000
/**
 * Unmeasured requests, in which Node.js compiles the code of Vendure. Vendure is slower than the other servers, so
 * warm-up rounds as long as the measured ones would take too long.
 */
const VENDURE_WARM_UPS = { full: 1_500, quick: 300, smoke: 3 }
export const CONNECTIONS = 16

export const SHARING = canPin
  ? 'each server on core 0, the client on core 1'
  : 'servers and client share the cores as the system likes'

/** A server with the products, and its address. */
export interface Shop {
  readonly server: Program
  at(path: string): Address
}

/** Servers of the catalogue figures with the same products, and their load programs. */
export interface Shops {
  readonly load: Program
  readonly cloud: Shop & { readonly storeId: string }
  /** Starts a bare route server (test/bench/peers/bare-catalogue.ts). */
  bare(commits: 'single' | 'grouped'): Promise<Shop>
  /** Undefined without the option `--vendure`. */
  readonly vendure: Shop | undefined
}

export async function openShops(
  { mode, folder, vendure, note }: Bench,
  keep: (program: Promise<Program>) => Promise<Program>,
): Promise<Shops> {
  const start = (file: string, core: number, args: string[] = []) => keep(startProgram(file, core, args))
  const load = await start('load-program.js', CORES.load)
  const server = await start('cloud-program.js', CORES.server, [folder])
  const { port, base, authorization, storeId } = await server.request<PreparedCatalogue>({
    kind: 'catalogue',
    products: PRODUCTS,
  })
  const at = (name: string) => ({ port, path: `${base}/${name}`, authorization })
  const products = await allProducts(at('fetchProducts'), storeId)
  const bare: Shops['bare'] = async (commits) => {
    const program = await start('peers/bare-catalogue.js', CORES.server, [folder, commits])
    const address = await program.request<Omit<Address, 'path'>>({ kind: 'prepare', products })
    return { server: program, at: (path) => ({ ...address, path }) }
  }
  return { load, cloud: { server, at, storeId }, bare, vendure: vendure ? await openVendure() : undefined }

  async function openVendure(): Promise<Shop> {
    const program = await keep(startVendure(folder, PRODUCTS, note))
    const { port } = await program.request<{ port: number }>({ kind: 'prepare' })
    const address: Address = { port, path: '/shop-api', authorization: 'none' }
    const bodies = Array.from({ length: VENDURE_WARM_UPS[mode] }, (_, i) =>
      i % 3 === 0 ? searchBody(50) : productBody((i % PRODUCTS) + 1),
    )
    await load.request({ ...address, bodies, connections: CONNECTIONS, expected: '49999' })
    return { server: program, at: () => address }
  }
}

/** Notes that explain a missing Vendure row. */
export function peerNotes({ vendure }: Bench): string[] {
  return vendure ? [] : ['Vendure is not measured: add --vendure']
}

/** Fetches the products from the cloud, so that the bare routes can return the same bytes. */
async function allProducts({ port, path, authorization }: Address, storeId: string): Promise<BareProduct[]> {
  const products: BareProduct[] = []
  for (let cursor: string | undefined; ;) {
    const response = await fetch(`http://127.0.0.1:${port}${path}`, {
      method: 'POST',
      headers: { authorization, 'content-type': 'application/json' },
      body: JSON.stringify({ storeId, limit: 100, ...(cursor !== undefined && { cursor }) }),
    })
    const page = (await response.json()) as { products?: BareProduct[]; nextCursor?: string; error?: string }
    if (!page.products) throw new Error(`fetchProducts answered ${response.status}: ${page.error}`)
    products.push(...page.products)
    cursor = page.nextCursor
    if (cursor === undefined) return products
  }
}
