/* Experts: a mixture of models that each learn in their own way. All in double precision, whatever that of a run.
 *
 * The specification is laconic.learners.Experts. */
#ifndef EXPERTS_H
#define EXPERTS_H
#include "run.h"

/* phi, gain, column: rows of size entries; margins: one an expert. */
typedef struct { double *phi, *gain, *column, *margins; } ExpertRoom;

INLINE ExpertRoom expert_room(double* room, i64 size) { return (ExpertRoom){room, room + size, room + 2 * size, room + 3 * size}; }

/* Weigh the experts of an agent by a sample (room->phi, label), then let each of them learn; nothing without a label. */
void learn_experts(const Experts* experts, i64 loss, i64 agent, i64 size, i64 n_features, double label, const ExpertRoom* room);
/* All experts of an agent move by what is in room->gain. */
void move_experts(const Experts* experts, i64 agent, i64 size, const ExpertRoom* room);
/* The mixture of an agent's experts into room->gain. */
void mix_experts(const Experts* experts, i64 agent, i64 size, const ExpertRoom* room);

#endif
