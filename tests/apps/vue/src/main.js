import { createApp } from 'vue';
import { createRouter, createWebHistory, RouterView } from 'vue-router';
import Book from './Book.vue';
import Shelf from './Shelf.vue';

const routes = [
  { path: '/', component: Shelf },
  { path: '/book/:title', component: Book, props: true },
];
const history = createWebHistory(import.meta.env.BASE_URL);
createApp(RouterView).use(createRouter({ history, routes })).mount('#app');
