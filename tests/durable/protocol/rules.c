/* SPDX-License-Identifier: MIT */
#include "rules.h"

#include <stdio.h>
#include <string.h>

static const struct {
	const char *name, *without;
} rules[RULES] = {
	[RULE_CONFIRM] = {"confirm", "a run begins without a START"},
	[RULE_FENCE] = {"fence", "an end does not look at the session of the row"},
	[RULE_SERVER_CLOCK] = {"server-clock", "START does not look at the deadline"},
	[RULE_FULL_CLAIM] = {"full-claim", "no claim or look begins at the beginning again"},
	[RULE_BATCH_NUMBER] = {"batch-number", "a batch is sent again without a number"},
	[RULE_READ_BACK] = {"read-back", "the rows of the session are not read after a break"},
	[RULE_REAPER_LOCK] = {"reaper-lock", "a session is declared dead in the middle of a batch"},
	[RULE_CANCEL_RUNNING] = {"cancel-running",
				 "a cancel deletes a started row of a live session, and says DONE"},
	[RULE_LEASE] = {"lease", "a run begins whatever the last heartbeat was"},
	[RULE_LEASE_FROM_SENDING] = {"lease-from-sending", "the lease counts from the reply"},
	[RULE_LEASE_OF_SESSION] = {"lease-of-session",
				   "a timer of an old session runs by the lease of the new one"},
	[RULE_LEASE_AGAIN] = {"lease-again",
			      "a confirmed timer that may not run now leaves the memory"},
	[RULE_HEARTBEAT_REFUSED] = {"heartbeat-refused",
				    "a heartbeat revives a session that has expired"},
	[RULE_KEPT_OUTCOMES] = {"kept-outcomes", "after a break all outcomes count as usual"},
	[RULE_CLAIM_NUMBER] = {"claim-number",
			       "claims have no number, and do not look at the session"},
	[RULE_CLAIM_FREE] = {"claim-free",
			     "a claim takes what a look found, though another session has it"},
	[RULE_STARTED_BY] = {"started-by", "a row that is claimed again still counts as started"},
	[RULE_CANCEL_OWN] = {"cancel-own",
			     "a cancel in the own process finds its started row running"},
	[RULE_ROW_FENCE] = {"row-fence", "the fence is the number of the session"},
	[RULE_STAGED_CLOCK] = {"staged-clock", "a STAGED timer runs by the clock of its process"},
	[RULE_FINISH_IN] = {"finish-in", "an effect is made apart from the end of its run"},
	[RULE_FINISH_IN_STORED] = {"finish-in-stored", "finish_in does not need the timer's row"},
};

static int left_out = -1;

bool rule_holds(enum rule rule)
{
	return (int)rule != left_out;
}

bool rule_leave_out(const char *name)
{
	for (int i = 0; i < RULES; i++) {
		if (strcmp(rules[i].name, name) == 0) {
			left_out = i;
			return true;
		}
	}
	return false;
}

void rules_print(void)
{
	for (int i = 0; i < RULES; i++)
		printf("  %-20s %s\n", rules[i].name, rules[i].without);
}
