import { change, type Mutant } from './mutant.ts'

const SALES = 'edge-agent/decisions/till-sales.js'
const BACK = 'edge-agent/decisions/goods-back.js'
const REPORTS = 'edge-agent/ledger/till-reports.js'
const NOTICES = 'edge-agent/peers/till-notices.js'
const PIECES = 'edge-agent/ledger/till-pieces.js'
const ROUTES = 'edge-agent/http/routes/sale-routes.js'

/** Mutants of sales that tills report: one for each rule of ADR till-sales. */
export const TILL_MUTANTS: readonly Mutant[] = [
  {
    name: 'sale-not-journalled',
    what: 'The agent answers a sale without a row in its journal.',
    changes: [
      change(SALES, 'const ofSale = journal.append({ atMs: nowMs, evidence });', 'const ofSale = journal.head.seq;'),
    ],
    faults: ['tills'],
  },
  {
    name: 'sale-applied-twice',
    what: 'The cloud books a sale again that it has booked before.',
    changes: [change('cloud/sales/tills/record-sale.js', 'if (known?.purchase_id || (known', 'if ((known')],
    faults: ['tills', 'partition', 'weather'],
  },
  {
    name: 'sale-conflict-ignored',
    what: 'An agent takes a second, different sale with the same number for a repetition.',
    changes: [
      change(
        SALES,
        "if (known.content !== content && (state !== 'open' || known.state === 'open'))",
        'if (!isSame && nowMs < 0)',
      ),
    ],
    faults: ['tills'],
  },
  {
    name: 'sale-conflict-not-noticed',
    what: 'The cloud raises no exception for two different sales with the same number.',
    changes: [
      change(
        'cloud/sales/tills/record-sale.js',
        'async function conflictOf(call, store, known, sale, { agent }) {\n    if (agent)',
        'async function conflictOf(call, store, known, sale, { agent }) {\n    if (!agent)',
      ),
    ],
    faults: ['tills', 'partition'],
    liveness: true,
  },
  {
    name: 'limit-of-till-ignored',
    what: 'An agent lets a till sell more in an hour than the policy allows.',
    changes: [change(SALES, 'sold.sales + 1 > limits.salesPerHour', 'sold.sales < 0')],
    faults: ['tills', 'partition'],
  },
  {
    name: 'unnamed-agent-records',
    what: 'An agent records sales although the policy does not name it.',
    changes: [change(SALES, 'if (!policy()?.tillSales.agents.includes(agentId))', 'if (policy() === null)')],
    faults: ['tills', 'agent-crash'],
  },
  {
    name: 'piece-used-again',
    what: 'A piece that a till sold lets any number of tags pass.',
    changes: [change(PIECES, 'WHERE used.sale = sold.sale', 'WHERE used.sale = sold.product')],
    faults: ['tills'],
  },
  {
    name: 'piece-and-release',
    what: 'A tag leaves for a piece of a sale, and another one because its receipt released a label.',
    changes: [
      change(
        'edge-agent/decisions/authorize.js',
        'this.#parts.pieces.release(saleKey, identifiers)',
        'void identifiers',
      ),
    ],
    faults: ['tills'],
  },
  {
    name: 'released-after-void',
    what: 'Goods of a void sale leave because their label was released.',
    changes: [
      change(
        'edge-agent/lanes/gate/released-units.js',
        "return proof.kind === 'token' || !this.#parts.isOver(hexOf(proof.cti));",
        'return true;',
      ),
    ],
    faults: ['tills'],
  },
  {
    name: 'row-of-unnamed-agent-applied',
    what: 'The cloud applies sales of an agent that the policy does not name.',
    changes: [
      change(
        'cloud/sales/tills/apply-till.js',
        'if (!(await isNamed(call, store, agentId, storedMs))) {',
        'if (agentId === undefined) {',
      ),
    ],
    faults: ['liar'],
  },
  {
    name: 'notice-of-unnamed-agent-believed',
    what: 'An agent believes notices of sales from an agent that the policy does not name.',
    changes: [change(NOTICES, 'if (!isTrusted(iss))', 'if (iss === null)')],
    faults: ['liar'],
  },
  {
    name: 'revoked-pairing-served',
    what: 'A till whose pairing was revoked may go on.',
    changes: [
      change(
        'edge-agent/ledger/pairings.js',
        "['pairing', 'browser'].map((table)",
        "['browser', 'browser'].map((table)",
      ),
    ],
    faults: ['tills'],
  },
  {
    name: 'right-of-till-ignored',
    what: 'A program that may sell may also void.',
    changes: [
      change(
        ROUTES,
        "admit('returns'), async (c) => {\n        const body = await read(c, VoidSaleRequest, 'returns');",
        "admit('sales'), async (c) => {\n        const body = await read(c, VoidSaleRequest, 'sales');",
      ),
    ],
    faults: ['tills'],
  },
  {
    name: 'held-goods-sold',
    what: 'A till sells goods on hold without a warning.',
    changes: [
      change(
        'edge-agent/decisions/till-doubts.js',
        "if (!mayBeSold)\n        return { code: 'sale_of_held_item'",
        "if (item.status === 'cancelled')\n        return { code: 'sale_of_held_item'",
      ),
    ],
    faults: ['tills'],
  },
  {
    name: 'held-goods-silenced',
    what: 'What a till sold passes gates although the cloud has it on hold.',
    changes: [
      change(
        'edge-agent/items/till-tags.js',
        'return MAY_BE_SOLD.has(item.status) ? { ...item, status, paying: false } : item;',
        'return { ...item, status, paying: false };',
      ),
      change(
        'edge-agent/decisions/assess-sale.js',
        "!fault || fault.code === 'sale_tag_unknown' ||",
        "!fault || fault.code === 'sale_tag_unknown' || fault.code === 'sale_of_held_item' ||",
      ),
    ],
    faults: ['tills'],
  },
  {
    name: 'early-return-forgotten',
    what: 'An agent forgets a return that came before its sale.',
    // Both the return and the end of its sale wait.
    changes: [
      change(SALES, 'till.endSale(saleKey, (sender) => this.#isNamed(sender), this.#parts.items.isUnsold);', ';'),
      change(SALES, 'this.#waiting.apply(saleKey, sale, nowMs, seq);', ';'),
    ],
    faults: ['tills', 'partition'],
  },
  {
    name: 'early-void-forgotten',
    what: 'An agent forgets a void that came before its sale.',
    changes: [
      change(SALES, 'till.endSale(saleKey, (sender) => this.#isNamed(sender), this.#parts.items.isUnsold);', ';'),
      change(SALES, "const isVoid = state === 'void' || wasVoided;", "const isVoid = state === 'void';"),
    ],
    faults: ['tills', 'partition'],
  },
  {
    name: 'void-elsewhere-ignored',
    what: 'A void at an agent that did not take the sale leaves its tags silent.',
    changes: [
      change(
        BACK,
        'of ledger.till.paidBy(saleKey)',
        "of ledger.till.paidBy(saleKey).filter((name) => ledger.till.tag(name)?.sender === '')",
      ),
    ],
    faults: ['tills', 'partition'],
  },
  {
    name: 'early-return-forgotten-in-cloud',
    what: 'The cloud forgets a return that came before its sale.',
    changes: [
      change(
        'cloud/sales/tills/record-sale.js',
        'const waiting = await returnsAwaiting(call, store, incoming.key, sale);',
        'const waiting = [];',
      ),
    ],
    faults: ['tills', 'partition'],
  },
  {
    name: 'early-void-forgotten-in-cloud',
    what: 'The cloud forgets a void that came before its sale.',
    changes: [
      change(
        'cloud/sales/tills/record-sale.js',
        "const voidedMs = incoming.known?.state === 'void' ?",
        "const voidedMs = incoming.known?.state === 'never' ?",
      ),
    ],
    faults: ['tills', 'partition'],
  },
  {
    name: 'late-row-overrides-change',
    what: 'A late row makes goods paid that staff have counted since.',
    changes: [
      change(
        'cloud/sales/tills/sale-lines.js',
        'const isChanged = !knewStatus &&',
        'const isChanged = storedMs < 0 &&',
      ),
      change('cloud/sales/tills/piece-history.js', '...(others ? [others] : [])', ''),
    ],
    faults: ['tills', 'partition'],
    liveness: true,
  },
  {
    name: 'position-of-report-ignored',
    what: 'A report of a till ends with its acknowledgement, although the items do not contain it yet.',
    changes: [
      change(
        'edge-agent/items/replica.js',
        'const isContained = report.ver !== null && (',
        'const isContained = report.ver !== null || (',
      ),
    ],
    faults: ['tills', 'weather', 'broker'],
  },
  {
    name: 'report-never-ends',
    what: 'A report of a till counts for ever, also against later changes in the cloud.',
    changes: [
      change(
        REPORTS,
        'epoch = @epoch, ver = @ver, change = @before',
        'epoch = @epoch, ver = NULL + @ver, change = @before',
      ),
    ],
    faults: ['tills'],
    liveness: true,
  },
  {
    name: 'resold-goods-voided',
    what: 'A void ends the sale of goods that came back and were sold again.',
    changes: [change(BACK, 'ledger.till.tag(name) === undefined', "name !== ''")],
    faults: ['tills', 'partition'],
  },
  {
    name: 'rank-ignored',
    what: 'An older notice of another agent replaces a newer report.',
    changes: [change(REPORTS, 'if (known && (known.rank > rank ||', 'if (known && (known.rank < 0 ||')],
    faults: ['tills', 'weather'],
    liveness: true,
  },
  {
    name: 'notice-not-repeated',
    what: 'An agent sends a notice only once.',
    changes: [
      change(
        NOTICES,
        "if (answer.kind === 'unreachable')\n                return 'later';",
        "if (answer.kind === 'unreachable') {\n                peer.acked = last.change;\n                continue;\n            }",
      ),
    ],
    faults: ['tills', 'lan', 'partition'],
    liveness: true,
  },
  {
    name: 'notice-forgotten-at-restart',
    what: 'After a restart an agent does not announce what it had to announce before.',
    changes: [
      change(NOTICES, 'this.#parts.ledger.metadata.get(ACKED + agentId) ?? 0', 'this.#parts.ledger.till.lastChange'),
    ],
    faults: ['tills', 'lan', 'partition', 'agent-crash'],
    liveness: true,
  },
  {
    name: 'notice-numbers-fall',
    what: 'After a restart the numbers of notices begin below those that others have acknowledged.',
    changes: [change(NOTICES, 'this.#firstChange = parts.ledger.till.lastChange;', 'this.#firstChange = Infinity;')],
    faults: ['tills', 'moves', 'partition', 'keys'],
    liveness: true,
  },
  {
    name: 'void-not-announced',
    what: 'An agent does not announce voids.',
    changes: [
      change(
        REPORTS,
        "FROM till_tag WHERE sender = '' AND change > ?",
        "FROM till_tag WHERE sender = '' AND status <> 'cancelled' AND change > ?",
      ),
    ],
    faults: ['tills', 'partition'],
    liveness: true,
  },
  {
    name: 'report-lost-at-restore',
    what: 'After a restore of the cloud an agent takes its reports as contained in the items.',
    changes: [
      change(
        'edge-agent/ledger/journal/journal.js',
        'db.prepare("UPDATE till_tag SET epoch = NULL, ver = NULL WHERE seq > ? AND sender = \'\'").run(acked);',
        '',
      ),
    ],
    faults: ['tills', 'restore', 'partition'],
  },
]
