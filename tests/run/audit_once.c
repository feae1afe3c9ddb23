/* audit_once.c - one refusal of a hostile peer, and one run, as brigd tells the journal. 3: there is no journal */
#include "audit.h"

#include <stdio.h>

int main(void)
{
	struct audit_plan  plan = { .journal = JOURNAL_SOCKET, .text_fd = -1 };
	struct audit_entry entry;
	struct audit       audit;
	struct err         e;

	if (audit_open(&audit, &plan, &e) < 0 || audit.journal.fd < 0)
		return 3;
	audit_entry_init(&entry);
	entry.op        = "run";
	entry.error     = "unknown_profile";
	entry.field     = "profile";
	entry.profile   = "none\nMESSAGE=forged\n";
	entry.peer_comm = "\x1b[2Jx\nBRIG_X=1";
	entry.peer_uid  = 1000;
	audit_write(&audit, &entry);
	audit_entry_init(&entry);
	entry.reason    = EXIT_exited;
	entry.exit_code = 0;
	entry.op        = "exec";
	entry.run_id    = "7d444840-9dc0-11d1-b245-5ffdce74fad2";
	entry.peer_uid  = 1001;
	entry.granted   = (struct audit_limits){ 1ull << LIMIT_cpus, { .cpus = 500 } };
	audit_write(&audit, &entry);
	printf("%llu\n", (unsigned long long)audit_get_counts(&audit).journal_lost);
	audit_close(&audit);
	return 0;
}
