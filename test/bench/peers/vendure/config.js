// Configuration of Vendure on SQLite: only its search plugin, which lists products fast, and its job queue. Telemetry
// is off.
const { randomBytes } = require('node:crypto')
process.env.VENDURE_DISABLE_TELEMETRY = 'true'
const { DefaultJobQueuePlugin, DefaultLogger, DefaultSearchPlugin, LogLevel } = require('@vendure/core')

const secret = () => randomBytes(24).toString('hex')

/** @param {{ database: string, port: number, synchronize: boolean }} options */
exports.configOf = ({ database, port, synchronize }) => ({
  apiOptions: { hostname: '127.0.0.1', port, shopApiPath: 'shop-api', adminApiPath: 'admin-api', cors: false },
  authOptions: {
    tokenMethod: ['bearer'],
    superadminCredentials: { identifier: 'bench', password: secret() },
    cookieOptions: { secret: secret() },
  },
  dbConnectionOptions: { type: 'better-sqlite3', database, synchronize, migrations: [], prepareDatabase: pragmas, logging: false },
  paymentOptions: { paymentMethodHandlers: [] },
  logger: new DefaultLogger({ level: LogLevel.Error }),
  plugins: [DefaultJobQueuePlugin.init({ useDatabaseForBuffer: true }), DefaultSearchPlugin.init({ bufferUpdates: false })],
})

// Faster than the defaults of Vendure: WAL as in the cloud. NORMAL is enough, because the bench only reads.
function pragmas(db) {
  db.pragma('journal_mode = WAL')
  db.pragma('synchronous = NORMAL')
}
