import { tryTool } from '../verification/tools.ts'

/** A network namespace that is connected to this one, like the network of a remote cloud. */
export interface OtherNetwork {
  /** IP address of processes in that network. */
  host: string
  /** Command prefix that runs a command in that network. */
  through: readonly string[]
  /** Drops all packets without an error. */
  unplug(): void
  plug(): void
  /** Sets the packet loss in each direction, per cent. */
  lose(percent: number): void
  remove(): void
}

function run(command: string): { ok: boolean; why: string } {
  const [program = '', ...args] = command.split(' ')
  const { status, stderr, error } = tryTool(program, ...args)
  return { ok: status === 0, why: error?.message ?? stderr?.trim() ?? '' }
}

function must(...commands: string[]): void {
  for (const command of commands) {
    const { ok, why } = run(command)
    if (!ok) throw new Error(`${command}: ${why}`)
  }
}

const NAME = `untag${process.pid}`
const [HERE, THERE] = [`ut${process.pid}a`, `ut${process.pid}b`]
/** From the block for network benchmarks (RFC 2544). */
const NET = `198.18.${(process.pid >> 6) & 0xff}`
const FIRST = (process.pid & 0x3f) * 4
const there = (command: string) => `ip netns exec ${NAME} ${command}`

/** Sets the packet loss with netem, or with the firewall if the kernel lacks netem. False if neither works. */
function setLoss(percent: number): boolean {
  if (run(`tc qdisc replace dev ${HERE} root netem loss ${percent}%`).ok)
    return run(there(`tc qdisc replace dev ${THERE} root netem loss ${percent}%`)).ok
  const rule = (hook: string) => run(there(`nft add rule inet loss ${hook} numgen random mod 100 < ${percent} drop`)).ok
  return (
    run(there('nft add table inet loss')).ok &&
    ['input', 'output'].every(
      (hook) =>
        run(there(`nft add chain inet loss ${hook} { type filter hook ${hook} priority 0 ; }`)).ok &&
        run(there(`nft flush chain inet loss ${hook}`)).ok &&
        rule(hook),
    )
  )
}

function open(): void {
  must(
    `ip netns add ${NAME}`,
    `ip link add ${HERE} type veth peer name ${THERE}`,
    `ip link set ${THERE} netns ${NAME}`,
    `ip addr add ${NET}.${FIRST + 1}/30 dev ${HERE}`,
    `ip link set ${HERE} up`,
    there(`ip addr add ${NET}.${FIRST + 2}/30 dev ${THERE}`),
    there(`ip link set ${THERE} up`),
    there('ip link set lo up'),
  )
}

function remove(): void {
  run(`ip link del ${HERE}`)
  run(`ip netns del ${NAME}`)
}

function missing(): string | null {
  if (process.platform !== 'linux') return 'there are network namespaces on Linux only'
  try {
    open()
    return setLoss(1) ? null : 'packets cannot be lost: install the package nftables'
  } catch (error) {
    return (error as Error).message
  } finally {
    remove()
  }
}

/** Reason that this machine cannot create another network, or null. */
export const NO_OTHER_NETWORK = missing()

export function otherNetwork(): OtherNetwork {
  open()
  return {
    host: `${NET}.${FIRST + 2}`,
    through: ['ip', 'netns', 'exec', NAME],
    unplug: () => must(`ip link set ${HERE} down`),
    plug: () => must(`ip link set ${HERE} up`),
    lose(percent) {
      if (!setLoss(percent)) throw new Error(`${percent} % of the packets cannot be lost`)
    },
    remove,
  }
}
