/* SPDX-License-Identifier: MIT */
/*
 * The rules of the protocol. A run of the search can leave out one rule, to see that the checks
 * find which property breaks.
 */
#ifndef PROTOCOL_RULES_H
#define PROTOCOL_RULES_H

#include <stdbool.h>

enum rule {
	RULE_CONFIRM,
	RULE_FENCE,
	RULE_SERVER_CLOCK,
	RULE_FULL_CLAIM,
	RULE_BATCH_NUMBER,
	RULE_READ_BACK,
	RULE_REAPER_LOCK,
	RULE_CANCEL_RUNNING,
	RULE_LEASE,
	RULE_LEASE_FROM_SENDING,
	RULE_LEASE_OF_SESSION,
	RULE_LEASE_AGAIN,
	RULE_HEARTBEAT_REFUSED,
	RULE_KEPT_OUTCOMES,
	RULE_CLAIM_NUMBER,
	RULE_CLAIM_FREE,
	RULE_STARTED_BY,
	RULE_CANCEL_OWN,
	RULE_ROW_FENCE,
	RULE_STAGED_CLOCK,
	RULE_FINISH_IN,
	RULE_FINISH_IN_STORED,
	RULES,
};

/* Returns false only for the rule that was left out. */
bool rule_holds(enum rule rule);
/* Returns false if there is no rule of that name. */
bool rule_leave_out(const char *name);
void rules_print(void);

#endif
