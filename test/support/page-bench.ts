import { listen } from '../../host/http-server.ts'
import { startChromium, type TestBrowser } from './chromium.ts'
import { openShop, type Shop } from './shop.ts'

/** A browser with the pages of a shop's cloud. */
export interface PageBench {
  readonly chromium: TestBrowser
  readonly shop: Shop
  /** The URL of a page by its path. */
  at(path: string): string
  stop(): Promise<void>
}

/** Starts shop, server and browser. */
export async function openPageBench(): Promise<PageBench> {
  const chromium = await startChromium()
  const shop = await openShop('sqlite')
  const server = await listen({ host: '127.0.0.1', port: 0, flag: 'port' })
  server.serve(shop.cloud.cloud.app)
  return {
    chromium,
    shop,
    at: (path) => `http://127.0.0.1:${server.port}${path}`,
    async stop() {
      await chromium.close()
      await server.close()
      await shop.stop()
    },
  }
}
