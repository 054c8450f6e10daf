/*
 * A device on libosdp (https://github.com/goToMain/libosdp), for osdp-oracle.test.ts. In a checkout of it with
 * its submodule, after `sed 's/@[A-Z_]*@/x/' src/osdp_config.h.in > include/osdp_config.h`:
 *
 *   cc -O1 -w -Iinclude -Isrc -Iutils/include -o peer THIS_FILE src/osdp_{common,phy,sc,file,pd,cp,metrics}.c \
 *     src/crypto/tinyaes_src.c src/crypto/tinyaes.c utils/src/{list,queue,utils,disjoint_set,crc16,logger,slab}.c
 */
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <osdp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

static int line = -1;
static int output;
static long long off_at;

static long long now_ms(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000LL + t.tv_nsec / 1000000;
}

/** libosdp's small AES needs an external random source. This one is only for tests. */
uint32_t rand_u32(void)
{
	return ((uint32_t)random() << 16) ^ (uint32_t)random();
}

static int transmit(void *data, uint8_t *bytes, int length)
{
	if (line < 0)
		return length;
	return send(line, bytes, length, MSG_NOSIGNAL) == length ? length : -1;
}

static int receive(void *data, uint8_t *bytes, int length)
{
	if (line < 0)
		return 0;
	int got = recv(line, bytes, length, MSG_DONTWAIT);
	if (got == 0) {
		close(line);
		line = -1;
	}
	return got < 0 ? 0 : got;
}

static void fill_status(struct osdp_status_report *status)
{
	memset(status->report, 0, sizeof status->report);
	status->nr_entries = status->type == OSDP_STATUS_REPORT_LOCAL ? 2 : 4;
	if (status->type == OSDP_STATUS_REPORT_INPUT || status->type == OSDP_STATUS_REPORT_OUTPUT)
		status->report[0] = output;
}

static int on_command(void *arg, struct osdp_cmd *command)
{
	switch (command->id) {
	case OSDP_CMD_OUTPUT:
		printf("OUT %d %d %d\n", command->output.output_no, command->output.control_code, command->output.timer_count);
		if (command->output.output_no == 0) {
			output = command->output.control_code == 5;
			off_at = now_ms() + command->output.timer_count * 100;
		}
		break;
	case OSDP_CMD_LED:
		printf("LED %d %d\n", command->led.temporary.control_code, command->led.temporary.on_color);
		break;
	case OSDP_CMD_BUZZER:
		printf("BUZ %d %d\n", command->buzzer.control_code, command->buzzer.rep_count);
		break;
	case OSDP_CMD_KEYSET:
		printf("KEYSET ");
		for (int i = 0; i < 16; i++)
			printf("%02X", command->keyset.data[i]);
		printf("\n");
		break;
	case OSDP_CMD_STATUS:
		fill_status(&command->status);
		break;
	default:
		break;
	}
	fflush(stdout);
	return 0;
}

static void hold_card(osdp_t *device)
{
	struct osdp_event event;
	memset(&event, 0, sizeof event);
	event.type = OSDP_EVENT_CARDREAD;
	event.cardread.format = OSDP_CARD_FMT_RAW_UNSPECIFIED;
	event.cardread.length = 32;
	memcpy(event.cardread.data, "\x04\xA1\xB2\xC3", 4);
	osdp_pd_submit_event(device, &event);
}

static struct osdp_pd_cap capabilities[] = {
	{ OSDP_PD_CAP_CONTACT_STATUS_MONITORING, 1, 4 },
	{ OSDP_PD_CAP_OUTPUT_CONTROL, 1, 4 },
	{ OSDP_PD_CAP_READER_LED_CONTROL, 1, 1 },
	{ OSDP_PD_CAP_READER_AUDIBLE_OUTPUT, 1, 1 },
	{ OSDP_PD_CAP_CHECK_CHARACTER_SUPPORT, 1, 0 },
	{ OSDP_PD_CAP_COMMUNICATION_SECURITY, 1, 1 },
	{ (uint8_t)-1, 0, 0 },
};

int main(int argc, char **argv)
{
	uint8_t key[16];
	int has_key = argc > 1 && strlen(argv[1]) == 32;
	int install = argc > 2 && strcmp(argv[2], "install") == 0;
	for (int i = 0; has_key && i < 16; i++) {
		unsigned value;
		sscanf(argv[1] + 2 * i, "%2x", &value);
		key[i] = value;
	}
	struct osdp_channel channel = { .send = transmit, .recv = receive };
	osdp_pd_info_t info = {
		.address = 0,
		.baud_rate = 9600,
		.flags = install ? OSDP_FLAG_INSTALL_MODE : has_key ? OSDP_FLAG_ENFORCE_SECURE : 0,
		.id = { .version = 2, .model = 1, .vendor_code = 0xCAFE01, .serial_number = 1234567, .firmware_version = 0x030405 },
		.cap = capabilities,
		.scbk = has_key ? key : NULL,
	};
	osdp_logger_init("peer", 3, NULL);
	osdp_t *device = osdp_pd_setup(&channel, &info);
	if (!device)
		return 1;
	osdp_pd_set_command_callback(device, on_command, NULL);

	int one = 1;
	int listener = socket(AF_INET, SOCK_STREAM, 0);
	struct sockaddr_in address = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t length = sizeof address;
	bind(listener, (struct sockaddr *)&address, length);
	listen(listener, 4);
	getsockname(listener, (struct sockaddr *)&address, &length);
	fcntl(listener, F_SETFL, O_NONBLOCK);
	fcntl(0, F_SETFL, O_NONBLOCK);
	printf("ready %d\n", ntohs(address.sin_port));
	fflush(stdout);

	for (;;) {
		int next = accept(listener, NULL, NULL);
		if (next >= 0) {
			if (line >= 0)
				close(line);
			line = next;
			setsockopt(line, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
		}
		osdp_pd_refresh(device);
		if (output && now_ms() >= off_at)
			output = 0;
		char order[64];
		int got = read(0, order, sizeof order);
		if (got == 0)
			return 0;
		if (got > 3 && strncmp(order, "card", 4) == 0)
			hold_card(device);
		usleep(500);
	}
}
