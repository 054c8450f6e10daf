import { startEdge } from '../../../bin/commands/edge.ts'
import { EMPTY_CONFIG } from '../../../edge-agent/config.ts'
import { newLog } from '../../../host/log.ts'
import { readOptions } from '../../../host/options.ts'
import { EDGE_OPTIONS } from '../../../host/settings/edge.ts'
import { jumpingPlatform } from './jumping-platform.ts'

/** The agent of an outage: `untag edge` whose time jumps when the parent process sends a number of ms. */
const [data = '', runtimeDir = '', aheadMs = '0'] = process.argv.slice(2)
const platform = jumpingPlatform(Number(aheadMs))
const settings = { ...readOptions(EDGE_OPTIONS, [], {}), data, runtimeDir, port: 0 }
const running = await startEdge(settings, EMPTY_CONFIG, platform, newLog('edge', 'error'))
process.on('message', (ms) => platform.jump(Number(ms)))
process.on('disconnect', () => void running.stop().finally(() => process.exit(0)))
process.send?.({ url: running.url })
