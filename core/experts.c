/* Experts: see experts.h. */
#include "experts.h"
#include "losses.h"
void learn_experts(const Experts* e, i64 loss, i64 agent, i64 size, i64 n_features, double label, const ExpertRoom* room) { (void)e; (void)loss; (void)agent; (void)size; (void)n_features; (void)label; (void)room; }
void move_experts(const Experts* e, i64 agent, i64 size, const ExpertRoom* room) { (void)e; (void)agent; (void)size; (void)room; }
void mix_experts(const Experts* e, i64 agent, i64 size, const ExpertRoom* room) { (void)e; (void)agent; (void)size; (void)room; }
