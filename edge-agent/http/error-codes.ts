/** Every error code of the agent's HTTP API, with its status and fix. docs/reference/errors.md explains them. */
export const AGENT_ERRORS = {
  'invalid-argument': {
    status: 400,
    fix: 'Send a JSON object with the fields of /openapi.json, and correct those that details names.',
  },
  unauthenticated: {
    status: 401,
    fix: 'On the machine of the agent, run untag edge pair --data DIR --may sales,returns for a till, or untag edge credential --data DIR for all rights. Send what it prints as Authorization: Bearer. In a browser, open the link that untag edge link --data DIR prints.',
  },
  wrong_credentials: { status: 401, fix: 'Let the operator enter the PIN or scan the badge again.' },
  pairing_link_invalid: {
    status: 403,
    fix: 'Run untag edge link --data DIR on the machine of the agent, and open the new link.',
  },
  host_not_allowed: { status: 403, fix: 'Add the name to hosts in the configuration of the agent.' },
  origin_not_allowed: { status: 403, fix: 'Call the agent from a program or from its own pages.' },
  till_missing: { status: 403, fix: 'Send the tillId that the program was paired with (untag edge pair --till).' },
  right_missing: { status: 403, fix: 'Pair the program again with untag edge pair --may sales,returns.' },
  sales_not_allowed: {
    status: 403,
    fix: 'Add the id of this agent to tillSales.agents of the policy (updateProtectionPolicy), and wait until it has arrived.',
  },
  operator_required: { status: 403, fix: 'Let an operator sign in at the device, or send X-Untag-Operator.' },
  not_home: { status: 403, fix: 'Wait until both agents have the newest policy.' },
  notice_not_genuine: { status: 403, fix: 'Wait until both agents have the newest policy.' },
  notices_missing: { status: 409, fix: 'Nothing: the other agent announces all again.' },
  sales_refused: { status: 403, fix: 'Wait until both agents have the newest policy.' },
  release_refused: { status: 403, fix: 'Call staff: the gates may alarm for these goods.' },
  setup_code_wrong: { status: 403, fix: 'Compare the code with the console of the manager, or ask for a new one.' },
  setup_code_used: { status: 403, fix: 'Ask a manager for a new set-up code. Each code registers one device.' },
  setup_code_expired: { status: 403, fix: 'Ask a manager for a new set-up code. A code works for 15 minutes.' },
  setup_code_needed: {
    status: 403,
    fix: 'Send registration with a set-up code of a manager, or write the entry into the configuration file and restart the agent.',
  },
  registration_refused: { status: 403, fix: 'Read the error, and show it to the manager of the store.' },
  test_not_allowed: {
    status: 403,
    fix: 'Test the device within 15 minutes after its registration with a set-up code.',
  },
  change_not_allowed: {
    status: 403,
    fix: 'Change the device within 15 minutes after it was added on the page, or edit the configuration file and restart the agent.',
  },
  'not-found': { status: 404, fix: 'Compare the address or the id with /openapi.json and /v1/status.' },
  no_config_file: { status: 404, fix: 'Start the agent with --config FILE.' },
  'method-not-allowed': { status: 405, fix: 'Use a method that the header Allow names.' },
  sale_conflict: { status: 409, fix: 'Send the day or Z number as series, if the numbers of the till start again.' },
  purchase_not_refundable: { status: 409, fix: 'Nothing: the sale is void.' },
  already_refunded: { status: 409, fix: 'Nothing: these goods came back before.' },
  too_many_open_sales: { status: 409, fix: 'Pay or void open sales of this till.' },
  too_many_waiting_returns: { status: 409, fix: 'Send the sale of these returns first.' },
  alarm_disposed: {
    status: 409,
    fix: 'Show the operator who recorded which cause, and send another one with it as seen.',
  },
  'payload-too-large': { status: 413, fix: 'Send a Content-Length, and a smaller body.' },
  'unsupported-media-type': { status: 415, fix: 'Send the body as application/json.' },
  locked: { status: 429, fix: 'Wait for the seconds in Retry-After, then sign in again.' },
  busy: { status: 429, fix: 'Wait until the running check has ended.' },
  'rate-limited': { status: 429, fix: 'Let the reader send several reads in one request.' },
  too_many_questions: { status: 429, fix: 'Wait for the seconds in Retry-After.' },
  internal: { status: 500, fix: 'Check the log of the agent, and report the error.' },
  no_store_key: { status: 503, fix: 'Connect the agent to the cloud, and sign in again after a few seconds.' },
  unavailable: { status: 503, fix: 'Send the request again in a second.' },
  cloud_unreachable: { status: 503, fix: 'Connect the agent to the cloud, and repeat with the same code.' },
  config_not_written: {
    status: 503,
    fix: 'Let the user of the agent write the configuration file and its folder, and repeat with the same code.',
  },
  sale_queue_full: { status: 503, fix: 'Connect the agent to the cloud, or send the sale to another agent.' },
  ledger_full: { status: 503, fix: 'Make room on the disk of the agent.' },
  ledger_unavailable: { status: 503, fix: 'Check the disk of the agent, and restart the agent.' },
  too_many_requests: { status: 503, fix: 'Wait for the seconds in Retry-After, then send the request again.' },
  too_many_listeners: { status: 503, fix: 'Close a page or a program that receives the events of the agent.' },
} as const satisfies Record<string, { status: number; fix: string }>

/** The code of an error answer. */
export type AgentErrorCode = keyof typeof AGENT_ERRORS
/** The HTTP status of an error code. */
export type StatusOf<C extends AgentErrorCode> = (typeof AGENT_ERRORS)[C]['status']
